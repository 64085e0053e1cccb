# SPDX-License-Identifier: Apache-2.0
"""Missing values as other programs read them, and those of their files as the model gets them."""

from __future__ import annotations

import json
import shutil
import subprocess
import warnings

import netCDF4
import numpy as np
import pytest
import xarray
from weir_one_rank import RECORDS, values_of

pytestmark = pytest.mark.any_mpi

HERE = {"lon": [15.0 * i for i in range(24)], "lat": [82.5 - 15 * j for j in range(12)]}
SHAPE = (12, 24)


def there(directory, name: str) -> np.ndarray:
    return np.load(directory / f"{name}.npy")


def with_hole(record: int, value: float, dtype: str) -> np.ndarray:
    values = values_of(record, SHAPE).astype(dtype)
    values[0, 0] = value
    return values


@pytest.mark.parametrize("missing", [1e20, -9e33, 0.1, -999.0])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_xarray_masks_what_is_missing(one_rank, tmp_path, missing, dtype):
    """Also those values of float64 that are none of float32."""
    forms = ("zarr", "netcdf4", "cdf5")
    jobs = [{**HERE, "put": form, "format": form, "type": dtype, "missing": missing, "hole": True}
        for form in forms]
    assert one_rank(*jobs) == [""] * len(forms)
    expected = values_of(RECORDS - 1, SHAPE).astype("f8")
    expected[0, 0] = np.nan
    for form in forms:
        for options in ({}, {"use_zarr_fill_value_as_mask": True})[: 2 if form == "zarr" else 1]:
            opened = xarray.open_zarr if form == "zarr" else xarray.open_dataset
            with warnings.catch_warnings():
                warnings.simplefilter("error", xarray.SerializationWarning)
                with opened(tmp_path / form, decode_times=False, **options) as file:
                    assert np.array_equal(file["t"][-1].values, expected, equal_nan=True), form
    for into in ("f4", "f8"):
        jobs = [{**HERE, "get": form, "type": into, "missing": -9.0} for form in forms]
        assert one_rank(*jobs) == [""] * len(forms)
        for form in forms:
            assert np.array_equal(there(tmp_path, form), with_hole(1, -9, into)), (form, into)


def test_stores_with_a_short_missing_value_are_read_and_gone_on_with(one_rank, tmp_path):
    """As weir wrote them: 1e+20 beside data of float32."""
    job = {**HERE, "put": "o", "format": "zarr", "missing": 1e20, "hole": True}
    assert one_rank(job) == [""]
    for path in (tmp_path / "o").rglob("zarr.json"):
        path.write_text(path.read_text().replace("100000002004087734272.0", "1e+20"))
    assert "1e+20" in (tmp_path / "o" / "t" / "zarr.json").read_text()
    for into in ("f4", "f8"):
        assert one_rank({**HERE, "get": "o", "type": into, "missing": -9.0}) == [""]
        assert np.array_equal(there(tmp_path, "o"), with_hole(1, -9, into))
    assert one_rank({**job, "existing": "append", "begin": 7200}) == [""]
    opened = xarray.open_zarr(tmp_path / "o", decode_times=False)
    assert opened["t"].shape[0] == 2 * RECORDS
    assert np.isnan(opened["t"][:, 0, 0]).all() and opened["t"].max() < 1000


@pytest.mark.parametrize("fill", [-999.0, 1e20, float("nan")])
def test_a_store_of_xarray(one_rank, tmp_path, fill):
    """It writes _FillValue of floats in base64, and has 0 as the store's fill value."""
    values = np.stack([with_hole(record, np.nan, "f4") for record in range(RECORDS)])
    values[:, 1, 1] = 0
    array = xarray.DataArray(values, dims=("time", "lat", "lon"), attrs={"units": "K"})
    array.to_dataset(name="t").to_zarr(tmp_path / "x", encoding={"t": {"_FillValue": fill}},
        zarr_format=3)
    stored = json.loads((tmp_path / "x" / "t" / "zarr.json").read_text())["attributes"]
    assert isinstance(stored["_FillValue"], str)
    for into in ("f4", "f8"):
        assert one_rank({**HERE, "get": "x", "type": into, "missing": -9.0}) == [""]
        expected = with_hole(1, -9, into)
        expected[1, 1] = 0
        assert np.array_equal(there(tmp_path, "x"), expected)


def test_a_missing_value_that_cdo_has_changed(one_rank, tmp_path):
    if shutil.which("cdo") is None:
        pytest.skip("cdo is not installed")
    assert one_rank({**HERE, "put": "o", "format": "cdf5", "missing": 1e20, "hole": True}) == [""]
    subprocess.run(["cdo", "-s", "setmissval,-999", "o", "changed"], cwd=tmp_path, check=True,
        timeout=300)
    for into in ("f4", "f8"):
        assert one_rank({**HERE, "get": "changed", "type": into, "missing": 1e20}) == [""]
        assert np.array_equal(there(tmp_path, "changed"), with_hole(1, 1e20, into))
        # without a missing value of the field
        assert one_rank({**HERE, "get": "changed", "type": into}) == [""]
        assert np.array_equal(there(tmp_path, "changed"), with_hole(1, -999, into))


def test_a_file_without_records_is_said_to_have_none(one_rank, tmp_path):
    with netCDF4.Dataset(tmp_path / "none", "w") as file:
        for name, size in (("time", None), ("lat", SHAPE[0]), ("lon", SHAPE[1])):
            file.createDimension(name, size)
        file.createVariable("t", "f4", ("time", "lat", "lon"))
    for record in (-1, 0):
        (said,) = one_rank({**HERE, "get": "none", "record": record})
        assert said.endswith("variable 't' has no records; write one first, or read another file")
