# SPDX-License-Identifier: Apache-2.0
"""Missing values: every type in memory, every type in files, every form; a new file each day; files
that are there are refused. In C, Fortran and Python, whose files are the same."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from netCDF4 import Dataset

pytestmark = pytest.mark.any_mpi

TYPES = ("float32", "float64", "int32", "int64", "int16", "int8")
FORMS = ("number", "single", "whole", "integer")
FILES = ("20000101.nc", "20000102.nc", "means.nc")
EDGES = {"float32": np.nan, "float64": 1e300, "int32": -(2**31), "int64": 2**63 - 2,
    "int16": 2**15 - 1, "int8": -128}

PYTHON = f"""
import sys
sys.modules["mpi4py"] = None
import numpy as np
from weir import output

TYPES, FORMS, EDGES = {TYPES}, {FORMS}, {str(EDGES).replace("nan", "float('nan')")}
absent = {{"number": -99.0, "single": np.float32(-99), "whole": -99, "integer": np.int32(-99)}}
context = output.init()
grid = context.plane_grid("plane", [0, 1, 2, 3], [0, 1])
grid.set_mapping("crs", "lambert_conformal_conic", standard_parallel=(30, 60), earth_radius=6371229.0,
                 longitude_of_central_meridian=np.float32(-97.5), crs_wkt="PROJCRS[]")
part = grid.block("all", 0, 4, 0, 2)
fields = []
for kind in TYPES:
    for in_files in TYPES:
        for form in FORMS:
            fields.append(part.field(f"{{kind}}_{{in_files}}_{{form}}", kind, units="1", file_dtype=in_files, missing_value=absent[form]))
    fields.append(part.field(f"{{kind}}_edge", kind, units="1", missing_value=EDGES[kind]))
context.stream("snapshots", "python_%Y%m%d.nc", fields, every_s=43200, rotation="day", existing="refuse")
means = [(f, "mean") for f in fields if not f.name.endswith("_edge")]
context.stream("means", "python_means.nc", means, every_s=86400)
with context:
    for step in range(3):
        values = np.arange(8) + 10 * step
        values[[3] * (step == 1) + [5] * (step > 0) + [6] * (step == 0)] = -99
        with context.step(43200.0 * step):
            for f in fields:
                f.put(values.reshape(2, 4).astype(f.dtype))
"""


def expected(step: int) -> np.ndarray:
    values = np.arange(8) + 10 * step
    values[[3] * (step == 1) + [5] * (step > 0) + [6] * (step == 0)] = -99
    return values


def mean_of(*steps: int) -> np.ndarray:
    rows = np.ma.masked_equal([expected(step) for step in steps], -99)
    return rows.mean(axis=0).filled(-99)


def check_contents(directory) -> None:
    # step 0 begins the first interval
    records = {"c_20000101.nc": [expected(0), expected(1)], "c_20000102.nc": [expected(2)],
        "c_means.nc": [mean_of(1, 2)]}
    assert mean_of(1, 2)[3] == 23 and mean_of(1, 2)[5] == -99  # what the test rests on
    for name, wanted in records.items():
        with Dataset(directory / name) as file:
            file.set_auto_mask(False)
            crs = {key: file["crs"].getncattr(key) for key in file["crs"].ncattrs()}
            assert crs.pop("standard_parallel").tolist() == [30, 60]
            assert crs == {"grid_mapping_name": "lambert_conformal_conic", "earth_radius": 6371229,
                "longitude_of_central_meridian": -97.5, "crs_wkt": "PROJCRS[]"}
            assert file["float32_edge" if name != "c_means.nc"
                else "int8_int8_whole"].grid_mapping == "crs"
            assert file["x"].standard_name == "projection_x_coordinate" and file["y"].axis == "Y"
            assert len(file.dimensions["time"]) == len(wanted)
            for kind in TYPES:
                for in_files in TYPES:
                    for form in FORMS:
                        variable = file[f"{kind}_{in_files}_{form}"]
                        assert (
                            variable.dtype == in_files
                            and variable._FillValue.dtype == in_files
                            and variable._FillValue == -99
                        )
                        for record, values in enumerate(wanted):
                            found = variable[record].ravel()
                            want = values.astype(in_files) if in_files.startswith(
                                "f") else np.trunc(values)
                            assert np.array_equal(found, want), (name, variable.name, record, found,
                                want)
                if name == "c_means.nc":
                    continue
                edge = file[f"{kind}_edge"]._FillValue
                assert edge.dtype == kind and (np.isnan(edge) if kind == "float32"
                    else edge == EDGES[kind]), kind


@pytest.fixture
def run(libweir, execute, tmp_path):
    programs = libweir.root / "tests" / "faces" / "programs"

    def go(face: str):
        if face == "python":
            env = {**libweir.mpi.env, "WEIR_OUTPUT_LIBRARIES": str(libweir.libraries)}
            env["OMPI_COMM_WORLD_SIZE" if libweir.mpi.name == "openmpi" else "PMI_SIZE"] = "1"
            return execute([sys.executable, "-c", PYTHON], cwd=tmp_path, env=env, timeout=90)
        program = libweir.cc(programs / "missing.c") if face == "c" else libweir.fc(programs
            / "missing.F90")
        return libweir.run(1, program, face, cwd=tmp_path)

    return go


def test_three_faces_write_the_same_and_refuse_to_write_it_again(run, tmp_path):
    for face in ("c", "fortran", "python"):
        run(face).ok()
    assert {path.name for path in tmp_path.iterdir()} == {f"{face}_{file}"
        for face in ("c", "fortran", "python") for file in FILES}
    for file in FILES:
        first = (tmp_path / f"c_{file}").read_bytes()
        assert (tmp_path / f"fortran_{file}").read_bytes() == first, file
        assert (tmp_path / f"python_{file}").read_bytes() == first, file
    check_contents(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.glob("*_2000*.nc")}
    for face in ("c", "fortran", "python"):
        done = run(face)
        assert done.returncode != 0
        assert (
            f'{face}_20000101.nc is there already: the stream says existing = "refuse"'
            in done.stdout + done.stderr
        )
    assert {path: path.read_bytes() for path in tmp_path.glob("*_2000*.nc")} == before
