# SPDX-License-Identifier: Apache-2.0
"""weir_get reads files that others have made: times that are not unlimited, other types, packed
integers, GRIB in bulletins; and says what a file has where it cannot."""

from __future__ import annotations

import shutil
import subprocess

import netCDF4
import numpy as np
import pytest
import xarray
from weir_one_rank import RECORDS, values_of

pytestmark = pytest.mark.any_mpi

HERE = {"lon": [15.0 * i for i in range(24)], "lat": [82.5 - 15 * j for j in range(12)],
    "levels": [850, 500, 250]}
SHAPE = (3, 12, 24)
HEADING = b"\x01\r\r\n012\r\r\nHTXE85 KWBC 271200\r\r\n"


def tool(directory, *command: object) -> None:
    if shutil.which(str(command[0])) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run([str(word) for word in command], cwd=directory, capture_output=True,
        text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def there(directory, name: str) -> np.ndarray:
    return np.load(directory / f"{name}.npy")


def data(time: str = "time", attrs: dict | None = None, **more) -> xarray.DataArray:
    """Two records of t; `attrs`: of a coordinate variable of time."""
    coordinates = {} if attrs is None else {time: (time, [0, 1], attrs)}
    return xarray.DataArray(np.stack([values_of(record, SHAPE) for record in range(RECORDS)]),
        dims=(time, "plev", "lat", "lon"), name="t", attrs={"units": "K"}, coords={**coordinates,
            "plev": ("plev", HERE["levels"], {"units": "hPa"}),
            "lat": ("lat", HERE["lat"], {"units": "degrees_north"}),
            "lon": ("lon", HERE["lon"], {"units": "degrees_east"}), **more})


SINCE = {"units": "hours since 2000-01-01"}


@pytest.mark.parametrize("form", ["NETCDF3_64BIT", "NETCDF4"])
def test_a_time_that_is_not_unlimited(one_rank, tmp_path, form):
    """As xarray writes it: by name (also WRF's), units (ERA5's), axis or standard name."""
    files = {"named": data(), "wrf": data("Time"), "era5": data("valid_time", SINCE),
        "axis": data("t1", {"axis": "T"}), "standard": data("t1", {"standard_name": "time"}),
        "usual": data(attrs=SINCE)}
    for name, array in files.items():
        array.to_netcdf(tmp_path / name, format=form)
    tool(tmp_path, "ncks", "--fix_rec_dmn", "time", "usual", "ncks")
    for record in range(RECORDS):
        assert one_rank(*({**HERE, "get": name, "record": record} for name in [*files, "ncks"])
            ) == [""] * (len(files) + 1)
        for name in [*files, "ncks"]:
            assert np.array_equal(there(tmp_path, name), values_of(record, SHAPE)), name
    last, none = one_rank({**HERE, "get": "era5"}, {**HERE, "get": "era5", "record": 2})
    assert last == "" and "has no record 2 but 2, counted from 0" in none
    assert np.array_equal(there(tmp_path, "era5"), values_of(RECORDS - 1, SHAPE))


def test_a_first_dimension_that_is_no_time_is_named(one_rank, tmp_path):
    data("member", {"units": "1"}).to_netcdf(tmp_path / "members")
    data().expand_dims("member").to_netcdf(tmp_path / "both")
    members, both = one_rank({**HERE, "get": "members"}, {**HERE, "get": "both"})
    assert "has 2 x 3 x 12 x 24 elements, the field 3 x 12 x 24" in members
    assert "the file's dimensions are member, plev, lat, lon, and no time in front" in members
    assert "dimensions are member, time, plev, lat, lon" in both and "ncwa -a" in both


def test_a_time_among_the_axes_of_the_field_stays_one(one_rank, tmp_path):
    """Months of a climatology."""
    months = data("lev").isel(plev=0, drop=True).rename(lev="time").isel(time=[0, 1])
    months.to_netcdf(tmp_path / "months")
    job = {**HERE, "levels": [1, 2], "level_units": "1", "axis": {}}
    assert one_rank({**job, "get": "months"}) == [""]
    assert np.array_equal(there(tmp_path, "months"), months.values)


def test_places_over_a_time_that_is_not_unlimited_are_compared(one_rank, tmp_path):
    i, j = np.meshgrid(np.arange(24) * 0.5, np.arange(12) * 0.5)
    lon, lat = 20 + 0.87 * i - 0.5 * j, 40 + 0.5 * i + 0.87 * j
    grid = {"lon": lon.tolist(), "lat": lat.tolist(), "levels": HERE["levels"]}
    dims = ("time", "lat", "lon")
    array = xarray.DataArray(np.stack([values_of(0, SHAPE)] * 2), name="t",
        dims=("time", "plev", "lat", "lon"), attrs={"units": "K"}, coords={
            "XLONG": (dims, np.stack([lon + 9, lon]), {"units": "degree_east"}),
            "XLAT": (dims, np.stack([lat, lat]), {"units": "degree_north"})})
    array.to_netcdf(tmp_path / "moving")
    last, first = one_rank({**grid, "get": "moving"}, {**grid, "get": "moving", "record": 0})
    assert last == "" and "'XLONG' has 29 degrees at point 0 of this rank, expected 20" in first


def test_a_file_without_unlimited_time_is_not_gone_on_with(one_rank, tmp_path):
    assert one_rank({**HERE, "put": "o", "format": "netcdf4"}) == [""]
    tool(tmp_path, "ncks", "--fix_rec_dmn", "time", "o", "fixed")
    before = (tmp_path / "fixed").read_bytes()
    (said,) = one_rank({**HERE, "put": "fixed", "format": "netcdf4", "existing": "append",
        "begin": 7200})
    assert "cannot go on with" in said and "dimension time" in said, said
    assert (tmp_path / "fixed").read_bytes() == before


def save(path, dtype: str, values: np.ndarray, form: str = "NETCDF4", fill_off: bool = False,
        **attributes) -> None:
    """A variable without attributes of coordinates, by netCDF4 without its own conversions."""
    with netCDF4.Dataset(path, "w", format=form) as file:
        if fill_off:
            file.set_fill_off()
        for name, size in zip(("time", "lev", "lat", "lon"), (1, *SHAPE), strict=True):
            file.createDimension(name, size)
        fill = attributes.pop("_FillValue", None)
        t = file.createVariable("t", dtype, ("time", "lev", "lat", "lon"), fill_value=fill)
        t.set_auto_maskandscale(False)
        t.setncatts(attributes)
        t[0] = values


def test_types_are_converted_where_values_fit(one_rank, tmp_path):
    wide = values_of(0, SHAPE).astype("f8") / 3
    whole = np.arange(np.prod(SHAPE)).reshape(SHAPE) - 99
    for name, dtype, values in (("f4", "f4", wide), ("f8", "f8", wide), ("i1", "i1", whole % 100),
            ("i2", "i2", whole), ("i8", "i8", whole)):
        save(tmp_path / name, dtype, values)
    jobs = [("f4", "f8"), ("f8", "f4"), ("i1", "f4"), ("i2", "f8"), ("i8", "i2"), ("i2", "i8")]
    for name, into in jobs:
        assert one_rank({**HERE, "get": name, "type": into}) == [""], (name, into)
        with xarray.open_dataset(tmp_path / name) as file:
            expected = file["t"].values[0].astype(into)
        assert there(tmp_path, name).dtype == into
        assert np.array_equal(there(tmp_path, name), expected), (name, into)


def test_values_that_do_not_fit_and_fractions_name_types_and_cure(one_rank, tmp_path):
    wide = values_of(0, SHAPE).astype("f8")
    wide[0, 0, 5] = 1e300
    save(tmp_path / "f8", "f8", wide)
    save(tmp_path / "i4", "i4", np.full(SHAPE, 70000))
    save(tmp_path / "packed", "i2", np.ones(SHAPE), scale_factor=0.5)
    save(tmp_path / "u2", "u2", np.full(SHAPE, 40000))
    save(tmp_path / "u8", "u8", np.ones(SHAPE))
    save(tmp_path / "meant", "i8", np.ones(SHAPE), _Unsigned="true")
    large, short, cut, scaled, above, *unsigned = one_rank({**HERE, "get": "f8"},
        {**HERE, "get": "i4", "type": "i2"}, {**HERE, "get": "f8", "type": "i4"},
        {**HERE, "get": "packed", "type": "i4"}, {**HERE, "get": "u2", "type": "i2"},
        {**HERE, "get": "u8"}, {**HERE, "get": "meant"})
    assert "float32, can hold (the first: element 5 of the record, 1e+300); declare" in large
    assert "the type of the file's values, float64" in large
    assert "864 values" in short and "int16, can hold" in short and "file's values, int32" in short
    assert "is of type float64 in the file, the field int32 in memory and int32 in files" in cut
    assert "declare the field as float32 or float64, or convert the file first" in cut
    assert "is of type int16 with scale_factor or add_offset in the file" in scaled
    assert "864 values" in above and "int16, can hold (the first: element 0 of" in above
    for said, name in zip(unsigned, ("uint64", "unsigned int64"), strict=True):
        assert f"is of type {name}, which weir does not read; convert it first (ncap2" in said, said


def test_unsigned_integers_are_read_as_such(one_rank, tmp_path):
    """As netCDF-4 has them, as the attribute states what the classic formats have not, as Zarr."""
    whole = np.arange(np.prod(SHAPE)).reshape(SHAPE)
    values = {"u1": whole % 256, "u2": whole * 75, "u4": whole * 4_900_000}
    for dtype, its in values.items():
        save(tmp_path / dtype, dtype, its)
        save(tmp_path / f"{dtype}.meant", f"i{dtype[1]}", its.astype(f"i{dtype[1]}"),
            _Unsigned="true")
        data().copy(data=np.stack([its] * RECORDS).astype(dtype)).to_dataset().to_zarr(
            tmp_path / f"{dtype}.zarr", zarr_format=3)
    names = {f"{dtype}{way}": its for dtype, its in values.items()
        for way in ("", ".meant", ".zarr")}
    for into in ("f8", "i8"):
        said = one_rank(*({**HERE, "get": name, "type": into} for name in names))
        assert said == [""] * len(names), into
        for name, its in names.items():
            assert np.array_equal(there(tmp_path, name), its), (name, into)
    save(tmp_path / "signed", "u1", values["u1"], _Unsigned="false")
    assert one_rank({**HERE, "get": "signed", "type": "i1"}) == [""]
    assert np.array_equal(there(tmp_path, "signed"), values["u1"].astype("u1").view("i1"))


@pytest.mark.parametrize("stored", ["u2", "i2"])
def test_missing_values_of_unsigned_integers(one_rank, tmp_path, stored):
    """xarray packs so, and satellites' files have 65535 for what is missing."""
    array = data(attrs=SINCE)
    array.values[:, 0, 3, 5:9] = np.nan
    packing = {"dtype": stored, "scale_factor": 0.01, "add_offset": 0.0, "_FillValue": 65535}
    if stored == "i2":
        packing |= {"_FillValue": -1, "_Unsigned": "true"}
    array.to_netcdf(tmp_path / "packed", encoding={"t": packing})
    assert one_rank({**HERE, "get": "packed", "type": "f8"}) == [""]
    with xarray.open_dataset(tmp_path / "packed") as file:
        expected = file["t"].values[-1]
    found = there(tmp_path, "packed")
    assert np.isnan(found).sum() == 4 and np.array_equal(np.isnan(found), np.isnan(expected))
    assert np.allclose(found, expected, rtol=0, atol=1e-9, equal_nan=True)


@pytest.mark.parametrize("into", ["f4", "f8"])
def test_packed_integers_of_others(one_rank, tmp_path, into):
    """As xarray, ncpdq and cdo pack; missing values become the field's, else NaN."""
    array = data(attrs=SINCE)
    array.values[:, 0, 3, 5:9] = np.nan
    packing = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 280.0, "_FillValue": -32767}
    array.to_netcdf(tmp_path / "xarray", encoding={"t": packing})
    array.to_netcdf(tmp_path / "plain", encoding={"t": {"_FillValue": -999.0}})
    tool(tmp_path, "ncpdq", "-O", "-P", "all_new", "plain", "nco")
    tool(tmp_path, "cdo", "-s", "-b", "I16", "-pack", "plain", "cdo")
    for name in ("xarray", "nco", "cdo"):
        job = {**HERE, "get": name, "type": into}
        (said,) = one_rank(job)
        assert said == "", (name, said)
        with xarray.open_dataset(tmp_path / name) as file:
            expected = file["t"].values[-1]
        found = there(tmp_path, name)
        assert np.array_equal(np.isnan(found), np.isnan(expected)), name
        assert np.isnan(found).sum() == 4 and np.nanmax(np.abs(found - expected)) < 1e-4, name
        assert one_rank({**job, "missing": -999.0}) == [""]
        assert (there(tmp_path, name)[0, 3, 5:9] == -999).all()


def test_missing_values_of_another_type(one_rank, tmp_path):
    """1e20 of float32 is another number than 1e20 of float64; one may not fit at all."""
    values = values_of(0, SHAPE).astype("f8")
    values[1, 2, 3] = 1e20
    save(tmp_path / "narrow", "f4", values, _FillValue=np.float32(1e20))
    save(tmp_path / "old", "f4", values, missing_value=np.float32(1e20))
    values[1, 2, 3] = -1e300
    save(tmp_path / "wide", "f8", values, _FillValue=-1e300)
    jobs = {"narrow": "f8", "old": "f8", "wide": "f4"}
    assert one_rank(*({**HERE, "get": name, "type": into, "missing": 1e20}
        for name, into in jobs.items())) == [""] * 3
    for name, into in jobs.items():
        expected = values_of(0, SHAPE).astype(into)
        expected[1, 2, 3] = 1e20
        assert np.array_equal(there(tmp_path, name), expected), name


FILLS = {"f4": 9.969209968386869e36, "f8": 9.969209968386869e36, "i2": -32767, "i4": -2147483647,
    "i8": -9223372036854775806, "u2": 65535, "u4": 4294967295}


@pytest.mark.parametrize("form", ["NETCDF4", "NETCDF3_64BIT_DATA"])
def test_what_netcdf_fills_with_is_missing_without_an_attribute(one_rank, tmp_path, form):
    """As netCDF4-python and ncdump have it, also where filling was off; in bytes it is a value."""
    for fill_off in (False, True):
        jobs = {}
        for dtype, fill in FILLS.items() | {("i1", -127)}:
            values = values_of(0, SHAPE).astype(dtype) if dtype != "i1" else np.ones(SHAPE, "i1")
            values[1, 2, 3] = fill
            save(tmp_path / dtype, dtype, values, form=form, fill_off=fill_off)
            with netCDF4.Dataset(tmp_path / dtype) as file:
                assert dtype == "i1" or np.ma.getmaskarray(file["t"][-1])[1, 2, 3], dtype
            for into in {"f8", {"u2": "i4", "u4": "i8"}.get(dtype, dtype)}:
                jobs[dtype, into] = values.astype(into)
        for is_wide in (True, False):
            chosen = [one for one in jobs if (one[1] == "f8") == is_wide]
            assert one_rank(*({**HERE, "get": dtype, "type": into, "missing": -9}
                for dtype, into in chosen)) == [""] * len(chosen)
            for dtype, into in chosen:
                if dtype != "i1":
                    jobs[dtype, into][1, 2, 3] = -9
                assert np.array_equal(there(tmp_path, dtype), jobs[dtype, into]), (
                    dtype, into, fill_off)


def test_a_fill_value_goes_before_what_netcdf_fills_with(one_rank, tmp_path):
    """_FillValue and missing_value are both missing; values of the type stay to the bit."""
    values = values_of(0, SHAPE).astype("f4")
    values[0, 0, :3] = FILLS["f4"], 1e20, -5
    save(tmp_path / "own", "f4", values, _FillValue=np.float32(1e20), missing_value=np.float32(-5))
    whole = np.arange(np.prod(SHAPE)).reshape(SHAPE) + 2**62
    save(tmp_path / "whole", "i8", whole, _FillValue=np.int64(2**62 + 1))
    assert one_rank({**HERE, "get": "own", "missing": -9.0},
        {**HERE, "get": "whole", "type": "i8", "missing": -9}) == ["", ""]
    values[0, 0, 1:3] = -9
    whole[0, 0, 1] = -9
    assert np.array_equal(there(tmp_path, "own"), values)
    assert np.array_equal(there(tmp_path, "whole"), whole)
    # without a missing value of the field they are read as they are
    assert one_rank({**HERE, "get": "own"}) == [""]
    assert there(tmp_path, "own")[0, 0, 1] == np.float32(1e20)


def test_packed_integers_without_a_fill_value(one_rank, tmp_path):
    packed = np.full(SHAPE, 7, "i2")
    packed[0, 0, 0] = -32767
    save(tmp_path / "packed", "i2", packed, scale_factor=0.5)
    assert one_rank({**HERE, "get": "packed", "type": "f8"}) == [""]
    found = there(tmp_path, "packed")
    assert np.isnan(found[0, 0, 0]) and np.nanmax(found) == np.nanmin(found) == 3.5


def test_zeros_of_a_zarr_store_are_no_missing_values(one_rank, tmp_path):
    """Zarr's own fill value, which xarray does not mask by."""
    array = data().astype("f4")
    array.values[0, 0] = 0
    array.isel(time=[0]).to_zarr(tmp_path / "z", zarr_format=3, consolidated=False)
    assert one_rank({**HERE, "get": "z", "type": "f8", "missing": -1.0}) == [""]
    assert np.array_equal(there(tmp_path, "z"), array.values[0])


@pytest.mark.parametrize("form", ["grib2", "grib1"])
def test_grib_in_bulletins(one_rank, tmp_path, form):
    """Each message behind its heading; what is no text, and a torn message, are refused."""
    assert one_rank({**HERE, "put": "o", "format": form}) == [""]
    whole = (tmp_path / "o").read_bytes()
    starts = [at for at in range(len(whole)) if whole.startswith(b"GRIB", at)
        and (at == 0 or whole.startswith(b"7777", at - 4))]
    messages = [whole[a:b] for a, b in zip(starts, [*starts[1:], len(whole)], strict=True)]
    assert len(messages) == 3 * RECORDS
    bulletins = b"".join(HEADING + message + b"\r\r\n\x03" for message in messages)
    (tmp_path / "bulletins").write_bytes(bulletins)
    filled = [message + bytes(-len(message) % 120) for message in messages]
    (tmp_path / "filled").write_bytes(b"".join(filled))  # as ECMWF's archive does
    (tmp_path / "first").write_bytes(b"0000012300" + HEADING + whole)
    (tmp_path / "torn").write_bytes(bulletins[:-10])
    (tmp_path / "binary").write_bytes(messages[0] + b"\x00" * 120 + b"".join(messages[1:]))
    (tmp_path / "damaged").write_bytes(messages[0] + b"X" + whole[len(messages[0]) + 1:])
    read, first, fills, torn, binary, damaged = one_rank(*({**HERE, "get": name} for name in
        ("bulletins", "first", "filled", "torn", "binary", "damaged")))
    assert [read, first, fills] == ["", "", ""]
    for name in ("bulletins", "first", "filled"):
        assert np.abs(there(tmp_path, name) - values_of(RECORDS - 1, SHAPE)).max() < 0.01
    assert "torn is truncated" in torn
    for said in (binary, damaged):
        assert f"at byte {len(messages[0])} is no message of GRIB" in said, said
    (again,) = one_rank({**HERE, "put": "bulletins", "format": form, "existing": "append",
        "begin": 7200})
    assert "cannot go on with" in again and "grib_copy" in again, again
    assert (tmp_path / "bulletins").read_bytes() == bulletins


@pytest.mark.parametrize(("form", "theirs"), [("grib1", "level=500"),
    ("grib2", "scaleFactorOfFirstFixedSurface=0,scaledValueOfFirstFixedSurface=0")])
def test_a_surface_without_a_value(one_rank, tmp_path, form, theirs):
    """Others give it one (NCEP: 0). weir's own has none, in edition 1 octets of 0."""
    job = {**HERE, "format": form, "units": "K", "standard_name": "",
        "attributes": {"GRIB_paramId": "235", "GRIB_typeOfLevel": "surface"}}
    del job["levels"]
    assert one_rank({**job, "put": "o"}) == [""]
    octets = subprocess.run(["grib_get", "-p", "typeOfLevel,level:i", "o"], cwd=tmp_path,
        check=True, capture_output=True, text=True).stdout
    assert octets == "surface 0\n" * RECORDS
    tool(tmp_path, "grib_set", "-s", theirs, "o", "theirs")
    assert (tmp_path / "theirs").read_bytes() != (tmp_path / "o").read_bytes()
    assert one_rank({**job, "get": "theirs"}) == [""]
    values = values_of(RECORDS - 1, SHAPE[1:])
    assert np.abs(there(tmp_path, "theirs") - values).max() < 0.01


def test_files_that_are_empty_or_of_no_format(one_rank, tmp_path):
    (tmp_path / "o.grb").write_bytes(b"")
    (tmp_path / "text.nc").write_text("Of GRIB, a format\n" * 9)
    empty, text = one_rank({**HERE, "get": "o.grb"}, {**HERE, "get": "text.nc"})
    assert "o.grb is empty: it has 0 bytes, expected a file of netCDF or GRIB" in empty
    assert "no file of netCDF, GRIB (edition 1 or 2) or Zarr (version 3)" in text


@pytest.mark.parametrize("block", range(0, 40960, 4096))
def test_a_damaged_file_is_an_error_and_nothing_more(one_rank, tmp_path, block):
    """HDF5 ended the process, or printed at its end that its memory has no end."""
    others = [{"name": f"f{i}", "on": True} for i in range(9)]
    assert one_rank({**HERE, "put": "o.nc", "format": "netcdf4", "others": others}) == [""]
    data = bytearray((tmp_path / "o.nc").read_bytes())
    data[block:block + 4096] = bytes(4096)
    (tmp_path / "o.nc").write_bytes(data)
    unfilled = {"MALLOC_PERTURB_": "165"}  # of malloc: what it returns is no zeros
    (said,) = one_rank({**HERE, "get": "o.nc", "record": 1}, **unfilled)
    assert "HDF5" not in one_rank.stderr
    (again,) = one_rank({**HERE, "put": "o.nc", "format": "netcdf4", "others": others,
        "existing": "append", "begin": 7200}, **unfilled)
    assert "HDF5" not in one_rank.stderr
    if said:
        assert "o.nc" in said and "o.nc" in again, (said, again)
        assert (tmp_path / "o.nc").read_bytes() == data
    else:
        assert there(tmp_path, "o.nc").shape == SHAPE
