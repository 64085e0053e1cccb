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
