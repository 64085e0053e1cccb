# SPDX-License-Identifier: Apache-2.0
"""What a netCDF-4 file of many variables costs: requests and instructions by variable, which do
not grow with their number."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import numpy as np
import pytest

netCDF4 = pytest.importorskip("netCDF4", reason="needs the test extra, on Python 3.11 or newer")

RECORDS = 3


@pytest.fixture(scope="session")
def program(native_build):
    path = native_build / "native" / "output" / "weir-write-stream"
    if not path.exists():
        pytest.skip("weir-write-stream is not built (needs libnetcdf-dev, libhdf5-dev)")
    return path


def test_metadata_are_few_requests(weir, program, tmp_path):
    """Chunks alone are a request for each variable: not the metadata of each, read or written."""
    many, path = 400, tmp_path / "o.nc"
    weir("trace", "-o", tmp_path / "run", "--", program, "netcdf4", f"many:{many}", path, RECORDS,
        1).ok()
    files = json.loads(weir("report", tmp_path / "run", "--json").ok().stdout)["files"]
    [ops] = [file["ops"] for file in files if file["file"] == str(path)]
    calls = {op: row["calls"] for op, row in ops.items()}
    print(calls)
    chunks = RECORDS * (many + 3)  # ta, ps and time beside them
    assert calls.get("read", 0) + calls.get("pread", 0) + calls.get("pread64", 0) < 0.2 * many
    written = sum(n for op, n in calls.items() if "write" in op)
    assert chunks * 0.9 < written < chunks + 0.1 * many


def test_every_reader_finds_the_dimensions(program, tmp_path):
    """The references between variables and dimensions are written by weir itself."""
    path = tmp_path / "o.nc"
    subprocess.run([program, "netcdf4", "many:6000", path, "1", "2"], check=True, timeout=300)
    with netCDF4.Dataset(path) as file:
        assert len(file.variables) == 6000 + 7
        for name, dimensions in (("p5999", ("time", "lat", "lon")), ("plev", ("plev",)),
                ("ta", ("time", "plev", "lat", "lon")), ("plev_bnds", ("plev", "bnds"))):
            assert file[name].dimensions == dimensions
        assert np.isfinite(file["p5999"][:]).all()
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    with h5py.File(path) as file:
        assert [scale[0].name for scale in file["ta"].dims] == ["/time", "/plev", "/lat", "/lon"]
        users = file["lat"].attrs["REFERENCE_LIST"]
        assert len(users) == 6000 + 2
        assert {(file[user].name, at) for user, at in users} >= {("/ta", 2), ("/p0", 1)}


def test_instructions_by_variable_do_not_grow(program, tmp_path):
    if not shutil.which("valgrind"):
        pytest.skip("valgrind is not installed")

    def count(many: int) -> int:
        out = tmp_path / f"{many}.out"
        subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", program,
            "netcdf4", f"many:{many}", tmp_path / "o.nc", "1", "1"], check=True, timeout=600,
            capture_output=True)
        text = out.read_text()
        assert "H5DSattach_scale" not in text
        return int(re.search(r"^(?:summary|totals): (\d+)", text, re.M)[1])

    none, few, many = count(0), count(100), count(400)
    print(f"{(few - none) // 100} and {(many - none) // 400} instructions a variable")
    assert (many - none) / 400 < 1.3 * (few - none) / 100
