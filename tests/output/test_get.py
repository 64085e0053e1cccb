# SPDX-License-Identifier: Apache-2.0
"""weir_get takes what the program has declared, and nothing else: other coordinates or units of a
file with as many points are refused, and so is a file that is not whole."""

from __future__ import annotations

import shutil
import subprocess

import netCDF4
import numpy as np
import pytest
import xarray
from weir_one_rank import RECORDS, values_of

pytestmark = pytest.mark.any_mpi

FORMS = ("cdf2", "cdf5", "netcdf4", "zarr", "grib2", "grib1")
HERE = {"lon": [15.0 * i for i in range(24)], "lat": [82.5 - 15 * j for j in range(12)],
    "levels": [850, 500, 250]}
SHAPE = (3, 12, 24)

# What a program declares beside the file, and words of the refusal: of names, and of GRIB.
OTHERS = {
    "lon": ([7.5 + 15 * i for i in range(24)], "7.5"),
    "narrow": ([10.0 * i for i in range(24)], "15 at index 1, expected 10", "230 E"),
    "lat": ([80.0 - 14 * j for j in range(12)], "80"),
    "levels": ([850, 500, 200], "200"),
    "units": ("degC", "'K'"),
    "level_units": ("Pa", "'hPa'"),
}


def other(name: str) -> dict:
    return {**HERE, "lon" if name == "narrow" else name: OTHERS[name][0]}


@pytest.mark.parametrize("form", FORMS)
def test_other_coordinates_and_units_are_refused(one_rank, tmp_path, form):
    wanted = [name for name in OTHERS if form != "grib1" or name != "level_units"]
    put, same, near, *found = one_rank({**HERE, "put": "o", "format": form},
        {**HERE, "get": "o"},
        {**HERE, "get": "o", "lon": [lon + 1e-3 for lon in HERE["lon"]],
            "levels": [850.001, 500, 250] if "grib" not in form else HERE["levels"]},
        *({**other(name), "get": "o"} for name in wanted))
    assert [put, same, near] == ["", "", ""]
    there = np.load(tmp_path / "o.npy")
    assert np.abs(there - values_of(RECORDS - 1, SHAPE)).max() < (0.01 if "grib" in form else 1e-9)
    for name, said in zip(wanted, found, strict=True):
        assert said, (form, name)
        if "grib" not in form:
            assert OTHERS[name][1] in said and "expected" in said and "declare the" in said, said
            assert "o: variable 't' is" in said, said
        elif "unit" not in name and name != "levels":
            assert "is on a grid from" in said and OTHERS[name][-1] in said, said


def test_the_opposite_order_is_named_with_its_cure(one_rank):
    _, said = one_rank({**HERE, "put": "o", "format": "netcdf4"},
        {**HERE, "get": "o", "lat": HERE["lat"][::-1]})
    assert "coordinate 'lat' is in the opposite order (turn the file round: ncpdq -a -lat)" in said


def test_files_of_others_are_compared_by_their_own_names(one_rank, tmp_path):
    """Other names of dimensions, single precision, other words for the same units, and turns of
    360 degrees are the same; a file without coordinates cannot be compared."""
    data = xarray.DataArray(values_of(0, SHAPE), dims=("pressure", "latitude", "longitude"),
        coords={"pressure": ("pressure", np.array(HERE["levels"], "f4"), {"units": "mbar"}),
            "latitude": ("latitude", np.array(HERE["lat"], "f4"), {"units": "degree_N"}),
            "longitude": ("longitude", np.array(HERE["lon"], "f4") - 360,
                {"units": "degrees_east"})},
        name="t", attrs={"units": "kelvin"})
    data.to_netcdf(tmp_path / "others.nc")
    data.drop_vars(["pressure", "latitude", "longitude"]).to_netcdf(tmp_path / "bare.nc")
    data.transpose("pressure", "longitude", "latitude").to_netcdf(tmp_path / "turned.nc")
    data.assign_attrs(units="furlongs").to_netcdf(tmp_path / "unknown.nc")
    said = one_rank({**HERE, "get": "others.nc"}, {**HERE, "get": "bare.nc"},
        {**other("lon"), "get": "others.nc"}, {**HERE, "get": "turned.nc"},
        {**HERE, "get": "unknown.nc"})
    assert said[:2] == ["", ""]
    assert "coordinate 'longitude' has -360 at index 0, expected 7.5 (24 of 24 differ)" in said[2]
    assert "has 3 x 24 x 12 elements, the field 3 x 12 x 24" in said[3]
    assert "is in 'furlongs', expected 'K'" in said[4]


def turned_grid() -> dict:
    """A regular grid turned by 30 degrees, around the date line."""
    i, j = np.meshgrid(np.arange(24) * 0.5, np.arange(12) * 0.5)
    return {"levels": HERE["levels"], "lon": (176 + 0.87 * i - 0.5 * j).tolist(),
        "lat": (40 + 0.5 * i + 0.87 * j).tolist()}


def moved(grid: dict, name: str, by: float) -> dict:
    return {**grid, name: (np.array(grid[name]) + by).tolist()}


@pytest.mark.parametrize("form", ["cdf5", "netcdf4", "zarr"])
def test_places_of_curvilinear_grids_are_compared(one_rank, tmp_path, form):
    """Each point; turns of 360 degrees and differences below 0.002 are the same."""
    grid = turned_grid()
    mirrored = {**grid, "lon": [row[::-1] for row in grid["lon"]]}
    *fine, lon, lat, mirror = one_rank({**grid, "put": "o", "format": form}, {**grid, "get": "o"},
        {**moved(grid, "lon", -360), "get": "o"}, {**moved(grid, "lat", 1e-3), "get": "o"},
        {**moved(grid, "lon", 0.25), "get": "o"}, {**moved(grid, "lat", -0.25), "get": "o"},
        {**mirrored, "get": "o"})
    assert fine == [""] * 4
    for said, words in (
        (lon, "'lon' has 176 degrees at point 0 of this rank, expected 176.25 (288 of 288"),
        (lat, "'lat' has 40 degrees at point 0 of this rank, expected 39.75 (288 of 288"),
        (mirror, "'lon' has 176 degrees at point 0 of this rank, expected 186.005 (288 of 288"),
    ):
        assert f"o: variable 't' is not where the field is: coordinate {words}" in said, said
        assert "declare the grid of the file" in said, said
    assert np.array_equal(np.load(tmp_path / "o.npy"), values_of(RECORDS - 1, SHAPE))


def test_places_in_files_of_others_are_compared(one_rank, tmp_path):
    """Radians and other names (ICON), over time (WRF), packed, missing on land (NEMO); a file
    without the attribute `coordinates` cannot be compared, nor one with other units."""
    grid = turned_grid()
    lon, lat = np.array(grid["lon"]), np.array(grid["lat"])
    data = xarray.DataArray(values_of(0, SHAPE)[np.newaxis], dims=("time", "z", "j", "i"), name="t",
        attrs={"units": "K"})

    def save(path: str, dims=("j", "i"), lon=lon, lat=lat, east=None, north=None, **more):
        east = east or {"units": "degree_E"}
        north = north or {"units": "degrees_N"}
        full = [np.broadcast_to(x, x.shape if len(dims) == 2 else (1, *x.shape))
            for x in (lon, lat)]
        data.assign_coords(TLONG=(dims, full[0], east), TLAT=(dims, full[1], north)).to_netcdf(
            tmp_path / path, unlimited_dims=["time"], **more)

    save("plain")
    save("radians", lon=np.radians(lon), lat=np.radians(lat), east={"standard_name": "longitude",
        "units": "radian"}, north={"standard_name": "latitude", "units": "radian"})
    save("overtime", ("time", "j", "i"))
    land = lon.copy()
    land[0, :5] = np.nan
    save("land", lon=land, encoding={"TLONG": {"_FillValue": 9e36}})
    save("packed", encoding={"TLAT": {"dtype": "i4", "scale_factor": 1e-4, "_FillValue": -1}})
    save("furlongs", lon=lon + 1, east={"units": "furlongs"})
    bare = xarray.open_dataset(tmp_path / "plain").drop_vars(["TLONG", "TLAT"])
    bare.to_netcdf(tmp_path / "bare")
    names = ["plain", "radians", "overtime", "land", "packed"]
    right = one_rank(*({**grid, "get": name} for name in [*names, "furlongs", "bare"]))
    assert right == [""] * 7
    for name, said in zip(names, one_rank(*({**moved(grid, "lat", 0.3), "get": name}
            for name in names)), strict=True):
        assert "coordinate 'TLAT' has 40" in said and "expected 40.3 (" in said, (name, said)


def test_places_of_cells_are_compared(one_rank):
    cells = {"cells": 60, "lon": (np.arange(60) * 6.1 % 360).tolist(),
        "lat": (np.arange(60) * 2.5 - 75).tolist(), "levels": [850]}
    other = {**cells, "lon": [*cells["lon"][:59], 3.0]}
    put, same, said, bare = one_rank({**cells, "put": "o", "format": "netcdf4"},
        {**cells, "get": "o"}, {**other, "get": "o"}, {"cells": 60, "levels": [850], "get": "o"})
    assert [put, same, bare] == [""] * 3
    assert "'lon' has 359.9 degrees at point 59 of this rank, expected 3 (1 of 60 differ)" in said


@pytest.mark.parametrize("form", ["cdf2", "cdf5", "NETCDF3_CLASSIC"])
def test_a_truncated_classic_file_is_refused(one_rank, tmp_path, form):
    """One byte is enough, in data that are asked for or not, in fixed variables and in records."""
    if form.startswith("cdf"):
        assert one_rank({**HERE, "put": "o", "format": form}) == [""]
    else:
        with netCDF4.Dataset(tmp_path / "o", "w", format=form) as file:
            for name, size in zip(("time", "lev", "lat", "lon", "c"), (None, *SHAPE, 5),
                    strict=True):
                file.createDimension(name, size)
            t = file.createVariable("t", "f4", ("time", "lev", "lat", "lon"))
            # of a type that weir does not read
            file.createVariable("title", "S1", ("time", "c"))[:] = b"x"
            t[:] = [values_of(record, SHAPE) for record in range(RECORDS)]
    whole = (tmp_path / "o").read_bytes()
    # what pads the last record is no loss
    last = len(whole) - (3 if form == "NETCDF3_CLASSIC" else 0)
    cuts = [last - 1, len(whole) // 2, 300, 40]
    for cut in cuts:
        (tmp_path / f"cut{cut}").write_bytes(whole[:cut])
    (tmp_path / "unpadded").write_bytes(whole[:last])
    fine, *said = one_rank({**HERE, "get": "unpadded"}, *({**HERE, "get": f"cut{cut}"}
        for cut in cuts))
    assert fine == ""
    for cut, why in zip(cuts, said, strict=True):
        assert f"cut{cut} is truncated: it has {cut} bytes" in why and "copy it again" in why, why
    (tmp_path / "o").write_bytes(whole[:-1000])
    (again,) = one_rank({**HERE, "put": "o", "format": form if form[0] == "c" else "cdf2",
        "existing": "append", "begin": 7200})
    assert again


def test_a_truncated_netcdf4_file_and_a_torn_chunk_are_refused(one_rank, tmp_path):
    """A chunk that is missing is the fill value, as Zarr defines it."""
    config = tmp_path / "zstd.toml"
    config.write_text('[stream.history]\ncompression = "zstd:1"\n')
    forms = {"h": {"format": "netcdf4"}, "z": {"format": "zarr"},
        "p": {"format": "zarr", "config": str(config)}}
    assert one_rank(*({**HERE, "put": name, **form} for name, form in forms.items())) == [""] * 3
    whole = (tmp_path / "h").read_bytes()
    (tmp_path / "h").write_bytes(whole[:-100])
    chunks = {}
    for store in ("z", "p"):
        chunks[store] = max((tmp_path / store / "t").glob("c*"))
        shutil.copytree(tmp_path / store, tmp_path / f"{store}2")
        data = chunks[store].read_bytes()
        chunks[store].write_bytes(data[: len(data) // 2])
        (tmp_path / f"{store}2" / chunks[store].relative_to(tmp_path / store)).unlink()
    said = one_rank(*({**HERE, "get": name} for name in ("h", "z", "p", "z2", "p2")))
    assert "cannot open" in said[0] and all(said[:3]), said
    assert all(str(chunks[store]) in why for store, why in zip("zp", said[1:3], strict=True)), said
    assert said[3:] == ["", ""]
    for store in ("z2", "p2"):
        there = xarray.open_zarr(tmp_path / store, decode_times=False)["t"].values[-1]
        assert np.array_equal(np.load(tmp_path / f"{store}.npy"), there, equal_nan=True)
        assert not np.array_equal(there, values_of(RECORDS - 1, SHAPE))


@pytest.mark.parametrize("form", ["grib2", "grib1"])
def test_a_torn_last_message_is_reported(one_rank, tmp_path, form):
    """Also where the file is gone on with; ecCodes reports the same file."""
    begin = 3600 * RECORDS
    assert one_rank({**HERE, "put": "o", "format": form}) == [""]
    whole = (tmp_path / "o").read_bytes()
    last = whole.rindex(b"GRIB")
    cuts = {"one": whole[:-1], "head": whole[: last + 5], "more": whole + b"\0" * 120}
    for name, data in cuts.items():
        (tmp_path / name).write_bytes(data)
    read = one_rank(*({**HERE, "get": name} for name in cuts))
    gone_on = one_rank(*({**HERE, "put": name, "format": form, "existing": "append",
        "begin": begin} for name in cuts))
    for name, said, again in zip(cuts, read, gone_on, strict=True):
        end = len(whole) if name == "more" else last
        words = ("is no message of GRIB" if name == "more" else f"what begins at byte {end:d}",
            f"at byte {end}")
        for text in (said, again):
            assert all(word in text for word in words), (name, text)
        assert (tmp_path / name).read_bytes() == cuts[name]
    (tmp_path / "o").write_bytes(whole[:last])  # as the message advises
    assert one_rank({**HERE, "get": "o", "record": 0}, {**HERE, "get": "o"})[0]


def test_ncks_takes_the_whole_records_of_a_truncated_file_out(one_rank, tmp_path):
    """What the message advises."""
    if shutil.which("ncks") is None:
        pytest.skip("ncks is not installed")
    assert one_rank({**HERE, "put": "o", "format": "cdf5"}) == [""]
    (tmp_path / "cut").write_bytes((tmp_path / "o").read_bytes()[:-1000])
    subprocess.run(["ncks", "-d", "time,0,0", "cut", "out"], cwd=tmp_path, check=True, timeout=300)
    assert one_rank({**HERE, "get": "out"}) == [""]
    assert np.array_equal(np.load(tmp_path / "out.npy"), values_of(0, SHAPE))
