# SPDX-License-Identifier: Apache-2.0
"""A field with several operations in one file, and streams without any field."""

from __future__ import annotations

import subprocess

import netCDF4
import numpy as np
import pytest

pytestmark = pytest.mark.any_mpi

HERE = {"lon": [15.0 * i for i in range(24)], "lat": [82.5 - 15 * j for j in range(12)],
    "records": 5, "every_s": 7200.0}
ALL = [["mean"], ["maximum", "tasmax"], ["minimum", "tasmin"]]
# A step's values are those of the step before, plus 1; a frame is of two steps.
FIRST, ABOVE = 250 + np.arange(288).reshape(12, 24) / 8, {"mean": 1.5, "maximum": 2, "minimum": 1}


@pytest.mark.parametrize("form", ["cdf5", "netcdf4"])
def test_each_operation_is_a_variable_with_its_name(one_rank, tmp_path, form):
    assert one_rank({**HERE, "put": "o.nc", "format": form, "operations": ALL}) == [""]
    with netCDF4.Dataset(tmp_path / "o.nc") as data:
        assert data["time_bnds"][:].tolist() == [[0, 7200], [7200, 14400]]
        for name, operation in (("t", "mean"), ("tasmax", "maximum"), ("tasmin", "minimum")):
            variable = data[name]
            assert variable.cell_methods == f"time: {operation}"
            assert variable.standard_name == "air_temperature"
            for record in (0, 1):
                expected = FIRST + ABOVE[operation] + 2 * record
                assert np.array_equal(variable[record], expected), name


def test_without_names_the_error_says_how_to_give_them(one_rank, tmp_path):
    job = {**HERE, "put": "o.nc", "operations": [["mean"], ["maximum"]]}
    (said,) = one_rank(job)
    assert "field 't' is in the stream twice, with two operations (mean, maximum) and one name" in (
        said)
    assert "weir_stream_add_field_as" in said and 'as = "..."' in said
    assert not (tmp_path / "o.nc").exists()


def test_the_configuration_gives_names(one_rank, tmp_path):
    fields = "".join(f'[[stream.history.field]]\nname = "t"\noperation = "{operation}"\nas = "{name}"\n'
        for operation, name in (("mean", "tas"), ("maximum", "tasmax")))
    (tmp_path / "o.toml").write_text(fields)
    assert one_rank({**HERE, "put": "o.nc", "config": "o.toml"}) == [""]
    with netCDF4.Dataset(tmp_path / "o.nc") as data:
        assert [data[v].cell_methods for v in ("tas", "tasmax")] == ["time: mean", "time: maximum"]
        assert "t" not in data.variables
    (tmp_path / "o.toml").write_text(fields.replace("tasmax", "tas"))
    (said,) = one_rank({**HERE, "put": "p.nc", "config": "o.toml"})
    assert said.startswith("o.toml:1:1: stream 'history': field 't' is in the stream twice"), said


def test_messages_of_grib_differ_by_the_statistical_process(one_rank, tmp_path):
    job = {**HERE, "put": "o.grib", "format": "grib2", "attributes": {"GRIB_paramId": "130"},
        "levels": [500.0, 850.0], "operations": [["mean"], ["maximum"], ["minimum"]],
        "existing": "append"}
    assert one_rank(job, {**job, "begin": 14400 + 3600.0, "records": 4}) == ["", ""]
    found = subprocess.run(["grib_get", "-p", "stepType,level,max", "o.grib"], cwd=tmp_path,
        check=True, capture_output=True, text=True).stdout.split()
    each = [("avg", "500"), ("avg", "850"), ("max", "500"), ("max", "850"), ("min", "500"),
        ("min", "850")]
    assert list(zip(found[::3], found[1::3], strict=True)) == 4 * each
    (said,) = one_rank({**job, "put": "p.grib", "operations": [["mean"], ["mean", "other"]]})
    assert "field 't' is in the stream twice, with one operation (mean); take one out" in said


def test_a_stream_without_fields_is_reported_once(one_rank, tmp_path):
    job = {**HERE, "put": "o_%Y.nc", "operations": []}
    assert one_rank(job) == [""]
    assert one_rank.stderr.count("stream 'history' has no fields: no file of the path "
        "'o_%Y.nc' is written") == 1
    assert "[[stream.history.field]]" in one_rank.stderr
    (tmp_path / "off.toml").write_text("[stream.history]\nenabled = false\n")
    assert one_rank({**job, "config": "off.toml"}) == [""]
    assert "has no fields" not in one_rank.stderr and not list(tmp_path.glob("o_*"))
