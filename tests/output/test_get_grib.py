# SPDX-License-Identifier: Apache-2.0
"""weir_get reads GRIB that others have made (cdo, the samples of ecCodes), and says which grid a
file has where the field is on another one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import xarray
from weir_one_rank import values_of

pytestmark = pytest.mark.any_mpi

HERE = {"lon": [15.0 * i for i in range(24)], "lat": [82.5 - 15 * j for j in range(12)],
    "levels": [850, 500, 250]}
SHAPE = (3, 12, 24)
REDUCED = {"cells": 208, "levels": HERE["levels"], "attributes": {"GRIB_gridName": "O4"}}
SAMPLES = Path("/usr/share/eccodes/samples")


def tool(directory: Path, *command: object) -> str:
    if shutil.which(str(command[0])) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run([str(word) for word in command], cwd=directory, capture_output=True,
        text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def sample(name: str) -> Path:
    path = SAMPLES / f"{name}.tmpl"
    if not path.exists():
        pytest.skip("the samples of ecCodes are not installed (libeccodes-data)")
    return path


@pytest.fixture
def others(tmp_path):
    """Two records of t in netCDF by xarray, with values that are missing at the first level."""
    values = np.stack([values_of(record, SHAPE) for record in range(2)])
    values[:, 0, 3, 5:9] = np.nan
    xarray.DataArray(values, dims=("time", "plev", "lat", "lon"), name="t", coords={
        "time": ("time", [0, 1], {"units": "hours since 2000-01-01"}),
        "plev": ("plev", 100.0 * np.array(HERE["levels"]), {"units": "Pa",
            "standard_name": "air_pressure", "positive": "down"}),
        "lat": ("lat", HERE["lat"], {"units": "degrees_north", "standard_name": "latitude"}),
        "lon": ("lon", HERE["lon"], {"units": "degrees_east", "standard_name": "longitude"})},
        attrs={"units": "K", "standard_name": "air_temperature"}).to_netcdf(tmp_path / "t.nc",
        encoding={"t": {"_FillValue": -9e33}})
    return values[-1]


def test_files_that_cdo_has_made(one_rank, tmp_path, others):
    """Packings, a bitmap for missing values, rows from south to north, both editions."""
    made = {"simple": ("-f", "grb2", "-b", 16), "ieee": ("-f", "grb2", "-b", "F32"),
        "ccsds": ("-f", "grb2", "-b", 16, "-z", "aec"), "edition1": ("-f", "grb", "-b", 16)}
    for name, options in made.items():
        parameter = "-setparam,0.0.0" if "grb2" in options else "-setcode,130"
        tool(tmp_path, "cdo", "-s", *options, parameter, "t.nc", name)
    tool(tmp_path, "grib_set", "-s", "table2Version=128", "edition1", "ecmwf")
    tool(tmp_path, "cdo", "-s", "invertlat", "simple", "upward")
    names = ["simple", "ieee", "ccsds", "ecmwf", "upward"]
    bitmaps = tool(tmp_path, "grib_get", "-w", "level=850", "-p", "bitmapPresent", "simple")
    assert set(bitmaps.split()) == {"1"}
    assert one_rank(*({**HERE, "get": name} for name in names)) == [""] * len(names)
    for name in names:
        there = np.load(tmp_path / f"{name}.npy")
        assert np.array_equal(np.isnan(there), np.isnan(others)), name
        assert np.nanmax(np.abs(there - others)) < 0.01, name


def by_place(directory: Path, name: str, level: int) -> np.ndarray:
    """Of the last record: values as ecCodes' iterator places them, from north to south."""
    tool(directory, "grib_copy", "-w", f"level={level},validityTime=100", name, "one")
    rows = [line.split() for line in tool(directory, "grib_get_data", "-m", "nan", "-F", "%.9g",
        "one").splitlines()[1:]]
    values = np.full(SHAPE[1:], np.inf)
    for lat, lon, value in ((float(word) for word in row) for row in rows):
        values[HERE["lat"].index(lat), HERE["lon"].index(lon)] = value
    return values


def test_files_whose_points_are_in_another_order(one_rank, tmp_path, others):
    """From east to west, columns one after the other: what ecCodes places. Its iterator over
    longitudes and latitudes takes no notice of rows that alternate (flag table 3.4, bit 4): each
    second row, or column, is turned here."""
    tool(tmp_path, "cdo", "-s", "-f", "grb2", "-b", 16, "-setparam,0.0.0", "t.nc", "simple")
    orders = {"westward": "swapScanningX=1", "columns": "jPointsAreConsecutive=1",
        "both": "swapScanningX=1,jPointsAreConsecutive=1"}
    for name, keys in orders.items():
        tool(tmp_path, "grib_set", "-s", keys, "simple", name)
        tool(tmp_path, "grib_set", "-s", "alternativeRowScanning=1", name, f"{name}-alternating")
    tool(tmp_path, "grib_set", "-s", "alternativeRowScanning=1", "simple", "alternating")
    names = [*orders, *(f"{name}-alternating" for name in orders), "alternating"]
    assert one_rank(*({**HERE, "get": name} for name in names)) == [""] * len(names)
    there = {name: np.load(tmp_path / f"{name}.npy") for name in names}
    for name in orders:
        for at, level in enumerate(HERE["levels"]):
            expected = by_place(tmp_path, name, level)
            assert not np.isinf(expected).any(), name
            assert np.allclose(there[name][at], expected, rtol=1e-6, equal_nan=True), (name, level)
        turned = there[name].copy()
        if name == "westward":
            turned[:, 1::2] = turned[:, 1::2, ::-1]
        else:  # from the west, or from the east
            second = slice(1, None, 2) if name == "columns" else slice(-2, None, -2)
            turned[:, :, second] = turned[:, ::-1, second]
        assert np.array_equal(there[f"{name}-alternating"], turned, equal_nan=True), name
    others = others.copy()
    others[:, 1::2] = others[:, 1::2, ::-1]
    assert np.allclose(there["alternating"], others, atol=0.01, equal_nan=True)


def test_a_file_of_both_editions(one_rank, tmp_path, others):
    """As archives have them: a field in edition 2 beside one in edition 1, and one in both."""
    tool(tmp_path, "cdo", "-s", "-f", "grb2", "-b", 16, "-setparam,0.0.0", "t.nc", "second")
    tool(tmp_path, "cdo", "-s", "-f", "grb", "-b", 16, "-setcode,131", "-addc,100", "t.nc", "u")
    tool(tmp_path, "cdo", "-s", "-f", "grb", "-b", 16, "-setcode,130", "-addc,50", "t.nc", "t1")
    for name in ("u", "t1"):
        tool(tmp_path, "grib_set", "-s", "table2Version=128", name, f"{name}.128")
    parts = {"beside": ("u.128", "second"), "behind": ("second", "u.128"),
        "later": ("second", "t1.128")}
    for name, files in parts.items():
        (tmp_path / name).write_bytes(b"".join((tmp_path / part).read_bytes() for part in files))
    wind = {**HERE, "standard_name": "eastward_wind", "units": "m s-1",
        "attributes": {"GRIB_paramId": 131}}
    jobs = [{**HERE, "get": "beside"}, {**wind, "get": "behind"}, {**HERE, "get": "later"}]
    assert one_rank(*jobs) == [""] * 3
    for name, more in (("beside", 0), ("behind", 100), ("later", 50)):
        there = np.load(tmp_path / f"{name}.npy")
        assert np.nanmax(np.abs(there - others - more)) < 0.01, name


def test_what_cannot_be_read_in_one_of_two_editions(one_rank, tmp_path, others):
    """On another grid, or without a level: an error at a time that the other edition does not have,
    and left out where it has them all."""
    for name, options in (("second", ()), ("coarse2", ("-remapnn,r12x6",))):
        tool(tmp_path, "cdo", "-s", "-f", "grb2", "-b", 16, "-setparam,0.0.0", *options, "t.nc",
            name)
    first_edition = {"same": (), "later": ("-shifttime,1day",), "coarse": ("-remapnn,r12x6",),
        "coarse-later": ("-remapnn,r12x6", "-shifttime,1day")}
    for name, options in first_edition.items():
        tool(tmp_path, "cdo", "-s", "-f", "grb", "-b", 16, "-setcode,130", *options, "t.nc", "wmo")
        tool(tmp_path, "grib_set", "-s", "table2Version=128", "wmo", name)
    for name in ("same", "later"):
        tool(tmp_path, "grib_copy", "-w", "level!=250", name, f"{name}-lacks")
    parts = {"a": ("second", "coarse"), "b": ("coarse", "second"), "c": ("second", "same-lacks"),
        "d": ("second", "coarse-later"), "e": ("coarse-later", "second"),
        "f": ("second", "later-lacks"), "g": ("coarse", "coarse2")}
    for name, files in parts.items():
        (tmp_path / name).write_bytes(b"".join((tmp_path / part).read_bytes() for part in files))
    *good, other_grid, other_grid_first, lacks, none = one_rank(
        *({**HERE, "get": name} for name in parts))
    assert good == [""] * 3
    for name in "abc":
        assert np.nanmax(np.abs(np.load(tmp_path / f"{name}.npy") - others)) < 0.01, name
    for said in (other_grid, other_grid_first, lacks):
        assert "in edition 1. Edition 2 can be read, but has no message at the time" in said
        assert said.endswith("(grib_copy -w edition=2)"), said
    offset = (tmp_path / "second").stat().st_size
    assert f"that at byte {offset}; " in other_grid
    assert "that at byte 0; " in other_grid_first
    for said in (other_grid, other_grid_first):
        assert "a regular lon-lat grid (12 x 6 points)" in said
    assert "is not in the file (parameter 128.130, level type 100, level 250)" in lacks
    assert "is on another grid, a regular lon-lat grid (12 x 6 points)" in none


def test_a_member_of_an_ensemble(one_rank, tmp_path, others):
    tool(tmp_path, "cdo", "-s", "-f", "grb2", "-b", 16, "-setparam,0.0.0", "t.nc", "alone")
    tool(tmp_path, "cdo", "-s", "-f", "grb", "-b", 16, "-setcode,130", "t.nc", "alone1")
    for member in (1, 2, 3):
        tool(tmp_path, "cdo", "-s", "-f", "grb2", "-b", 16, "-setparam,0.0.0", f"-addc,{member}",
            "t.nc", "more")
        tool(tmp_path, "grib_set", "-s", "productDefinitionTemplateNumber=1,perturbationNumber="
            f"{member},numberOfForecastsInEnsemble=3", "more", f"member{member}")
        tool(tmp_path, "cdo", "-s", "-f", "grb", "-b", 16, "-setcode,130", f"-addc,{member}",
            "t.nc", "more")
        tool(tmp_path, "grib_set", "-s", "table2Version=128,centre=98,setLocalDefinition=1,"
            f"localDefinitionNumber=1,number={member}", "more", f"old{member}")
    for name in ("member", "old"):
        (tmp_path / f"{name}s").write_bytes(b"".join((tmp_path / f"{name}{member}").read_bytes()
            for member in (1, 2, 3)))
    second = {**HERE, "attributes": {"GRIB_perturbationNumber": 2}}
    second_old = {**HERE, "attributes": {"GRIB_number": 2}}
    *said, several, other, none = one_rank({**second, "get": "members"},
        {**second_old, "get": "olds"}, {**HERE, "get": "member3"}, {**HERE, "get": "members"},
        {**HERE, "attributes": {"GRIB_number": 7}, "get": "members"}, {**second, "get": "alone"})
    assert said == ["", "", ""]
    for name, member in (("members", 2), ("olds", 2), ("member3", 3)):
        assert np.nanmax(np.abs(np.load(tmp_path / f"{name}.npy") - others - member)) < 0.01, name
    assert "is in the file as members 1, 2, 3 of an ensemble" in several, several
    assert "grib = { perturbationNumber = 3 }" in several, several
    assert "members 1, 2, 3 of an ensemble, not as member 7" in other, other
    assert "no member of an ensemble, not as member 2" in none, none


def test_a_parameter_with_a_number_of_its_centre(one_rank, tmp_path):
    """NCEP has categorical freezing rain in a local table, others in that of the WMO."""
    grid = {"lon": [2.0 * i for i in range(16)], "lat": [60.0 - 2 * j for j in range(31)],
        "units": "1", "standard_name": "", "attributes": {"GRIB_paramId": 260030}}
    shutil.copy(sample("regular_ll_sfc_grib2"), tmp_path / "sample")
    names = {"ncep": "centre=kwbc,", "wmo": ""}
    for name, centre in names.items():
        tool(tmp_path, "grib_set", "-s", f"{centre}paramId=260030,typeOfFirstFixedSurface=1",
            "sample", name)
    numbers = {name: tool(tmp_path, "grib_get", "-p", "parameterNumber", name) for name in names}
    assert numbers["ncep"] != numbers["wmo"]
    assert one_rank(*({**grid, "get": name} for name in names)) == ["", ""]


def test_samples_of_ecCodes(one_rank, tmp_path):
    """Each on a grid of its own kind, at 1000 or 850 hPa: values as ecCodes has them."""
    lat_lon = {"lon": [2.0 * i for i in range(16)], "lat": [60.0 - 2 * j for j in range(31)]}
    grids = {
        "regular_ll_pl_grib2": {**lat_lon, "levels": [850]},
        "reduced_gg_pl_32_grib2": {"cells": 6114, "levels": [1000],
            "attributes": {"GRIB_gridName": "N32"}},
        "sh_pl_grib2": {"cells": 4160, "levels": [1000], "attributes": {"GRIB_gridType": "sh"}},
    }
    for name in grids:
        shutil.copy(sample(name), tmp_path / name)
    assert one_rank(*({**grid, "get": name} for name, grid in grids.items())) == [""] * len(grids)
    for name in grids:
        there = np.load(tmp_path / f"{name}.npy")
        for at in (0, there.size // 3, there.size - 1):
            value = tool(tmp_path, "grib_get", "-F", "%.9g", "-i", at, name)
            assert there.flat[at] == pytest.approx(float(value), rel=1e-6), (name, at)


def test_the_message_of_another_grid_names_both_grids(one_rank, tmp_path):
    reduced, harmonics = "reduced_gg_pl_32_grib2", "sh_pl_grib2"
    for name in (reduced, harmonics):
        shutil.copy(sample(name), tmp_path / name)
    here, cells = {**HERE, "levels": [1000]}, {"cells": 6114, "levels": [1000]}
    put, ours, beside_reduced, beside_harmonics, unstructured, octahedral = one_rank(
        {**HERE, "put": "lonlat", "format": "grib2"}, {**REDUCED, "get": "lonlat"},
        {**here, "get": reduced}, {**here, "get": harmonics}, {**cells, "get": reduced},
        {**REDUCED, "levels": [1000], "get": reduced})
    assert put == ""
    has = "a reduced Gaussian grid (64 rows, 6114 points)"
    for said, there, own in (
        (ours, "a regular lon-lat grid (24 x 12 points)",
         "a reduced Gaussian grid (8 rows, 208 points)"),
        (beside_reduced, has, "a regular lon-lat grid (24 x 12 points)"),
        (beside_harmonics, "spherical harmonics (T 63)",
         "a regular lon-lat grid (24 x 12 points)"),
        (unstructured, has, "an unstructured grid (6114 points)"),
        (octahedral, has, "a reduced Gaussian grid (8 rows, 208 points)"),
    ):
        assert (f"field 't' is on another grid, {there}, than the field, which is on {own}; declare "
            "the grid of the file, or bring the file to the field's first" in said), said


def test_a_field_that_a_file_has_on_several_grids(one_rank, tmp_path, others):
    """Each program gets the messages that are on its grid, also those of others."""
    tool(tmp_path, "cdo", "-s", "-f", "grb2", "-b", 16, "-setparam,0.0.0", "t.nc", "lonlat")
    put, late = one_rank({**REDUCED, "put": "reduced", "format": "grib2"},
        {**REDUCED, "put": "late", "format": "grib2", "begin": 7200})
    assert [put, late] == ["", ""]
    files = {"both": ("reduced", "lonlat"), "turned": ("lonlat", "reduced"),
        "apart": ("lonlat", "late")}
    for name, parts in files.items():
        (tmp_path / name).write_bytes(b"".join((tmp_path / part).read_bytes() for part in parts))
    here, there, wrong = one_rank({**HERE, "get": "both"}, {**REDUCED, "get": "turned"},
        {**HERE, "get": "apart"})
    assert [here, there] == ["", ""]
    assert np.nanmax(np.abs(np.load(tmp_path / "both.npy") - others)) < 0.01
    assert np.abs(np.load(tmp_path / "turned.npy") - values_of(1, (3, 208))).max() < 0.01
    assert "is on the grid of the field in 2 messages, and at another time" in wrong, wrong
    assert "on another one alone: a reduced Gaussian grid (8 rows, 208 points)" in wrong
