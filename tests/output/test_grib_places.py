# SPDX-License-Identifier: Apache-2.0
"""Where readers of GRIB take values to be: the points that ecCodes, cdo and cfgrib compute from a
message, and its levels, are those that the program has declared."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from weir_one_rank import values_of
from weir_tools import gaussian, tool

pytestmark = pytest.mark.any_mpi

FORMS = ["grib2", "grib1"]
# Degrees: what the coordinates may be off; in edition 1 half a unit.
HELD = {"grib2": 2e-5, "grib1": 5.01e-4}
LON, LAT = [30.0 * i for i in range(12)], [75.0 - 30 * j for j in range(6)]


def north_to_south(step: float) -> list[float]:
    return [90 - step * j for j in range(round(180 / step) + 1)]


def around(n: int) -> list[float]:
    return [360 * i / n for i in range(n)]


# longitudes, latitudes, whether the editions 1 and 2 hold the increments (readers need one of a
# single row, too)
GRIDS = {
    "quarter": (LON, north_to_south(0.25), True, True),
    "sixteenth": (LON, north_to_south(0.0625), False, True),
    "twelfth": ([i / 12 for i in range(720)], LAT, False, False),
    "third": (LON, north_to_south(1 / 3)[::-1], False, False),
    "gaussian": (around(1280), gaussian(6), False, True),
    "gaussian with thirds": (around(1080), gaussian(6), False, False),
    "one row": (around(1080), [45.0], False, False),
    "one column": ([10.0], north_to_south(1 / 3), False, False),
    "few thirds": ([i / 3 for i in range(12)], [i / 3 for i in range(9)], False, True),
    "halves of a thousandth": ([0.0005 * i for i in range(101)], [10.0, 11.0], False, True),
}


def job_of(name: str, form: str) -> dict:
    lon, lat, *_ = GRIDS[name]
    return {"lon": lon, "lat": lat, "format": form}


def check_points(path: Path, lon: np.ndarray, lat: np.ndarray, most: float) -> int:
    """Returns whether the message has increments."""
    eccodes = pytest.importorskip("eccodes", reason="the package eccodes is not installed",
        exc_type=(ImportError, RuntimeError))
    with path.open("rb") as file:
        handle = eccodes.codes_grib_new_from_file(file)
    for key, wanted in zip(("latitudes", "longitudes"), np.meshgrid(lat, lon, indexing="ij"),
            strict=True):
        found = eccodes.codes_get_array(handle, key)
        assert np.abs(found - wanted.ravel()).max() < most, key
    return eccodes.codes_get(handle, "ijDirectionIncrementGiven", int)


def check_cdo(path: Path, lon: np.ndarray, lat: np.ndarray, most: float) -> None:
    said = dict(re.findall(r"^([xy](?:first|inc)) *= (\S+)$", tool("cdo", "-s", "griddes", path),
        re.M))
    for axis, values in (("x", lon), ("y", lat)):
        if f"{axis}inc" in said:  # not of Gaussian latitudes, nor of one row
            found = float(said[f"{axis}first"]) + float(said[f"{axis}inc"]) * np.arange(len(values))
            assert np.abs(found - values).max() < most, (axis, said)


@pytest.mark.parametrize("form", FORMS)
def test_points_are_where_the_program_has_them(one_rank, tmp_path, form):
    """Counted by a rounded increment the last latitude of 1/16 degree would be off by 1.44 degrees
    in edition 1; increments that do not fit are left out."""
    for name, (lon, lat, *holds) in GRIDS.items():
        job = job_of(name, form)
        if name == "one column" and form == "grib1":  # ecCodes would count its rows by nothing
            (said,) = one_rank({**job, "put": "o"})
            assert "its latitudes, in one column, are" in said and "use grib2" in said
            continue
        assert one_rank({**job, "put": "o"}, {**job, "get": "o"}) == [""] * 2, name
        given = check_points(tmp_path / "o", np.array(lon), np.array(lat), HELD[form])
        holds_or_needs = holds[form == "grib2"] or (form, name) == ("grib1", "one row")
        assert bool(given) == holds_or_needs, name
        check_cdo(tmp_path / "o", np.array(lon), np.array(lat), HELD[form])
        values = values_of(1, (len(lat), len(lon)))
        half = np.ptp(values) / 2**16
        assert np.abs(np.load(tmp_path / "o.npy") - values).max() < half, name


@pytest.mark.parametrize("form", FORMS)
def test_cfgrib_has_the_points(one_rank, tmp_path, form):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("cfgrib", reason="cfgrib is not installed", exc_type=ImportError)
    names = ["sixteenth", "twelfth", "third", "gaussian with thirds"]
    for name in names:
        lon, lat, *_ = GRIDS[name]
        assert one_rank({**job_of(name, form), "put": name}) == [""]
        with xarray.open_dataset(tmp_path / name, engine="cfgrib", decode_timedelta=False,
                backend_kwargs={"indexpath": ""}) as data:
            assert np.abs(data["longitude"].values - lon).max() < HELD[form], name
            assert np.abs(data["latitude"].values - lat).max() < HELD[form], name


def test_an_increment_that_is_given_agrees_though_it_is_left_out(one_rank, tmp_path):
    (tmp_path / "a.toml").write_text(
        "[stream.history.grib]\njDirectionIncrementInDegrees = 0.0625\n")
    job = {**job_of("sixteenth", "grib1"), "put": "o", "config": str(tmp_path / "a.toml")}
    assert one_rank(job) == [""]
    assert check_points(tmp_path / "o", *map(np.array, GRIDS["sixteenth"][:2]), HELD["grib1"]) == 0


def test_points_that_an_edition_cannot_tell_apart_are_refused(one_rank, tmp_path):
    fine = [0.0001 * i for i in range(2000)], [0.0, 1.0]
    finest = [10.0, 11.0], [1e-6 * j / 3 for j in range(9)]
    said = one_rank(*({"lon": lon, "lat": lat, "put": f"o{i}", "format": form}
        for i, (lon, lat) in enumerate((fine, finest)) for form in ("grib1", "grib2")))
    assert ("field 't': its longitudes are 1e-04 degrees apart, and edition 1 of GRIB has whole "
        "thousandths of a degree: 0.1999 would be read as 0.2; use grib2") in said[0]
    assert said[1] == "" and check_points(tmp_path / "o0", *map(np.array, fine), 1.2e-6) == 1
    assert "its latitudes are" in said[2] and "use grib2" in said[2]
    assert "edition 2 of GRIB has whole millionths of a degree" in said[3]
    assert "write it as netCDF or Zarr" in said[3]


SOIL = [[0, 7], [7, 28], [28, 100], [100, 255]]  # ECMWF's layers, in cm


def soil(units: str, size: float) -> dict:
    bounds = [[top / size, bottom / size] for top, bottom in SOIL]
    return {"lon": LON, "lat": LAT, "format": "grib1", "level_units": units,
        "levels": [sum(pair) / 2 for pair in bounds],
        "axis": {"standard_name": "depth", "bounds": bounds}, "attributes": {"GRIB_paramId": "139"}}


def surfaces(path: Path) -> list[tuple[int, ...]]:
    """Octets 10 to 12 of section 1, which begins behind 8 octets."""
    data = path.read_bytes()
    return [tuple(data[m.start() + 17:m.start() + 20]) for m in re.finditer(b"GRIB", data)]


def test_layers_of_the_soil_in_edition_1(one_rank, tmp_path):
    """ecCodes takes an octet of 255 for none, in ECMWF's own files too."""
    jobs = [{**soil("cm", 1), "put": "cm"}, {**soil("m", 100), "put": "m"}]
    assert one_rank(*jobs, {**soil("cm", 1), "get": "cm"}) == [""] * 3
    for units in ("cm", "m"):
        assert surfaces(tmp_path / units) == [(112, *pair) for pair in SOIL] * 2
        rows = tool("grib_get", "-p", "typeOfLevel,topLevel,bottomLevel", tmp_path / units)
        assert rows.splitlines()[:3] == [f"depthBelowLandLayer {a} {b}" for a, b in SOIL[:3]]
        text = tool("cdo", "-s", "zaxisdes", "-seltimestep,1", tmp_path / units)
        assert 'units     = "cm"' in text
        assert re.search(r"lbounds *= 0 7 28 100\b", text), text
        assert re.search(r"ubounds *= 7 28 100\b", text), text
    values = values_of(1, (4, len(LAT), len(LON)))
    assert np.abs(np.load(tmp_path / "cm.npy") - values).max() < 0.01


def test_depths_of_edition_1_are_in_cm(one_rank, tmp_path):
    def job(units: str, levels: list[float], **axis) -> dict:
        return {"lon": LON, "lat": LAT, "format": "grib1", "level_units": units, "levels": levels,
            "axis": {"standard_name": "depth", **axis}, "put": units}

    said = one_rank(job("cm", [7, 28]), job("m", [0.07, 0.28]), job("mm", [35]),
        job("cm", [3.5, 300], bounds=[[0, 7], [255, 289]]),
        job("cm", [3.5], bounds=[[0, 7.5]]),
        {**job("m", [2.5]), "axis": {"standard_name": "height"}},
        {**job("m", [2, 500], bounds=[[0, 100], [100, 900]]), "put": "layers",
            "axis": {"standard_name": "height", "bounds": [[0, 100], [100, 900]]}})
    assert [said[0], said[1], said[6]] == ["", "", ""]
    for units in ("cm", "m"):
        assert surfaces(tmp_path / units)[:2] == [(111, 0, 7), (111, 0, 28)]
        text = tool("cdo", "-s", "zaxisdes", tmp_path / units)
        assert 'units     = "cm"' in text and re.search(r"levels *= 7 28\b", text), text
    # the top comes first, in hundreds of metres
    assert surfaces(tmp_path / "layers")[:2] == [(106, 1, 0), (106, 9, 1)]
    for i, words in ((2, "level 35 mm is no whole number of cm from 0 to 65535"),
            (3, "the end 289 cm of a layer is no whole number of cm from 0 to 255"),
            (4, "the end 7.5 cm of a layer is no whole number of cm from 0 to 255"),
            (5, "level 2.5 m is no whole number of m from 0 to 65535")):
        assert f"axis 'lev': {words}, as edition 1 of GRIB has them; use grib2" in said[i], said[i]


def test_sigma_levels(one_rank, tmp_path):
    """Edition 1 has ten-thousandths, and hundredths of the ends of layers (code table 3)."""
    def job(edition: int, put: str, levels: list[float], units: str = "1", **axis) -> dict:
        return {"lon": LON, "lat": LAT, "format": f"grib{edition}", "level_units": units,
            "levels": levels, "put": put,
            "axis": {"standard_name": "atmosphere_sigma_coordinate", **axis}}

    layers = {"bounds": [[0, 0.25], [0.25, 0.5]]}
    said = one_rank(job(1, "one", [0.25, 0.995]), job(2, "two", [0.25, 0.995], "sigma_level"),
        job(1, "layers1", [0.1, 0.4], **layers), job(2, "layers2", [0.1, 0.4], **layers),
        {**job(1, "one", [0.25, 0.995]), "get": "one"}, job(1, "fine", [0.25, 0.99525]))
    assert said[:5] == [""] * 5
    assert surfaces(tmp_path / "one")[:2] == [(107, *divmod(2500, 256)), (107, *divmod(9950, 256))]
    assert surfaces(tmp_path / "layers1")[:2] == [(108, 0, 25), (108, 25, 50)]
    rows = tool("grib_get", "-p", "typeOfLevel,scaledValueOfFirstFixedSurface,"
        "scaleFactorOfFirstFixedSurface", tmp_path / "two")
    assert rows.splitlines()[:2] == ["sigma 25 2", "sigma 995 3"]
    rows = tool("grib_get", "-p", "typeOfLevel,scaledValueOfFirstFixedSurface,"
        "scaledValueOfSecondFixedSurface", tmp_path / "layers2")
    assert rows.splitlines()[:2] == ["sigmaLayer 0 25", "sigmaLayer 25 5"]
    assert ("axis 'lev': level 0.99525 is no whole number of ten-thousandths from 0 to 65535, as "
        "edition 1 of GRIB has them; use grib2") in said[5]


def test_layers_without_bounds_in_edition_1(one_rank):
    """One number would be the bottom of a layer from 0."""
    (said,) = one_rank({"lon": LON, "lat": LAT, "format": "grib1", "levels": [7, 28],
        "level_units": "cm", "axis": {"standard_name": "depth"}, "put": "o",
        "attributes": {"GRIB_typeOfLevel": "depthBelowLandLayer"}})
    assert ("levels of the type 'depthBelowLandLayer' are layers, and the axis has no bounds, whose "
        "ends edition 1 of GRIB has; give the axis bounds (weir_axis_set_bounds), or another "
        "typeOfLevel") in said
