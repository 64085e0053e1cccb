# SPDX-License-Identifier: Apache-2.0
"""Keys that contradict what the program has declared are refused, those that agree with it are
right; ecCodes, cdo and cfgrib judge what is written."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from weir_one_rank import values_of
from weir_tools import gaussian, tool

pytestmark = pytest.mark.any_mpi

LON, LAT = [15.0 * i for i in range(24)], [82.5 - 15 * j for j in range(12)]
HERE = {"lon": LON, "lat": LAT, "levels": [850, 500], "put": "o", "format": "grib2"}
HYBRID = {"levels": [1, 2, 3], "level_units": "1",
    "axis": {"standard_name": "atmosphere_hybrid_sigma_pressure_coordinate"}}
PV = "0 2000 1000.5 0 0 0.25 0.75 1"
O4 = {"cells": 2 * (20 + 24 + 28 + 32), "put": "o", "attributes": {"GRIB_gridName": "O4"}}


# keys: of the file; words of the refusal, "": it is right
KEYS = [
    ({"N": 48}, "N = 48 is not for its grid, whose keys follow from its coordinates"),
    ({"Ni": 12}, "Ni = 12 contradicts its coordinates, by which it is 24"),
    ({"latitudeOfFirstGridPointInDegrees": 90},
        "latitudeOfFirstGridPointInDegrees = 90 contradicts its coordinates, by which it is 82.5"),
    ({"longitudeOfLastGridPointInDegrees": 360}, "by which it is 345; leave it out"),
    ({"jScansPositively": 1}, "jScansPositively = 1 contradicts"),
    ({"scanningMode": 64}, "scanningMode = 64 is not for its grid"),
    ({"numberOfDataPoints": 7}, "numberOfDataPoints = 7 is not for its grid"),
    ({"gridType": "regular_gg"},
        "gridType = 'regular_gg' contradicts its coordinates, by which it is 'regular_ll'"),
    ({"gridType": "reduced_gg"}, "does not say the points of its rows; give gridName"),
    ({"gridType": "lambert", "Nx": 7, "Ny": 9}, "7 x 9 points contradict its grid, which has 288"),
    ({"Ni": 24, "Nj": 12, "jScansPositively": 0, "gridType": "regular_ll"}, ""),
]


def test_keys_of_the_grid_agree_with_the_coordinates_or_are_refused(one_rank, tmp_path):
    for i, (keys, _) in enumerate(KEYS):
        lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in keys.items())
        (tmp_path / f"{i}.toml").write_text(f"[stream.history.grib]\n{lines}\n")
    jobs = [{**HERE, "put": f"o{i}", "config": str(tmp_path / f"{i}.toml")}
        for i in range(len(KEYS))]
    for said, (keys, says) in zip(one_rank(*jobs), KEYS, strict=True):
        if says == "":
            assert said == "", (keys, said)
        else:
            assert says in said and re.search(r"\d\.toml:\d+:\d+: field 't': ", said), (keys, said)
    assert tool("grib_get", "-p", "gridType,Ni,Nj,latitudeOfFirstGridPointInDegrees", "-w",
        "level=850", tmp_path / f"o{len(KEYS) - 1}").split()[:4] == ["regular_ll", "24", "12", "82.5"]


@pytest.mark.parametrize("form", ["grib2", "grib1"])
def test_a_gaussian_grid_has_its_own_number(one_rank, tmp_path, form):
    (tmp_path / "48.toml").write_text("[stream.history.grib]\nN = 48\n")
    (tmp_path / "6.toml").write_text("[stream.history.grib]\nN = 6\n")
    there = {**HERE, "lat": gaussian(6), "format": form}
    wrong, right = one_rank({**there, "config": str(tmp_path / "48.toml")},
        {**there, "config": str(tmp_path / "6.toml")})
    assert "N = 48 contradicts its coordinates, by which it is 6" in wrong and right == ""
    assert "gaussian" in tool("cdo", "-s", "griddes", tmp_path / "o")
    assert set(tool("grib_get", "-p", "gridType,N,Nj", tmp_path / "o").splitlines()) == {
        "regular_gg 6 12"}


@pytest.mark.parametrize("form", ["grib2", "grib1"])
def test_longitudes_may_begin_anywhere_and_run_either_way(one_rank, tmp_path, form):
    """What cdo and cfgrib take the points for."""
    grids = {"west": ([-180 + 15.0 * i for i in range(24)], LAT),
        "over": ([350 + 2.0 * i for i in range(10)], LAT),
        "back": ([345 - 15.0 * i for i in range(24)], LAT),
        "north": (LON, LAT[::-1])}
    assert one_rank(*({**HERE, "put": name, "lon": lon, "lat": lat, "format": form}
        for name, (lon, lat) in grids.items()),
        *({**HERE, "get": name, "lon": lon, "lat": lat} for name, (lon, lat) in grids.items())
        ) == [""] * 8
    eccodes = pytest.importorskip("eccodes", reason="the package eccodes is not installed",
        exc_type=(ImportError, RuntimeError))
    for name, (lon, lat) in grids.items():
        values = values_of(1, (2, len(lat), len(lon)))
        assert np.abs(np.load(tmp_path / f"{name}.npy") - values).max() < 0.01, name
        with open(tmp_path / name, "rb") as file:
            handle = eccodes.codes_grib_new_from_file(file)
        points = [eccodes.codes_get_array(handle, key) for key in ("latitudes", "longitudes")]
        for found, wanted in zip(points, np.meshgrid(lat, lon, indexing="ij"), strict=True):
            apart = np.remainder(found - wanted.ravel() + 180, 360) - 180
            assert np.abs(apart).max() < 2e-3, (name, found, wanted)
        corners = [eccodes.codes_get(handle, f"longitudeOf{corner}GridPointInDegrees")
            for corner in ("First", "Last")]
        assert form == "grib1" or all(0 <= corner <= 360 for corner in corners), corners
        text = tool("cdo", "-s", "griddes", tmp_path / name)
        first = float(re.search(r"xfirst\s*=\s*(\S+)", text)[1])
        assert (first - lon[0]) % 360 < 1e-3 or (lon[0] - first) % 360 < 1e-3, text


@pytest.mark.parametrize("form", ["grib2", "grib1"])
def test_levels_of_the_model_have_all_their_coefficients(one_rank, tmp_path, form):
    def job(pv: str | None, **more) -> dict:
        attributes = {} if pv is None else {"GRIB_pv": pv}
        return {**HERE, "format": form, **HYBRID, "attributes": attributes, **more}

    long = " ".join("1" for _ in range(300))
    by_number = {"standard_name": "model_level_number"}
    said = one_rank(job(None), job("0 1 2"), job("0 2000 0 1"), job(long), job(PV),
        job(None, axis=by_number, put="n"), job(PV, levels=[2, 3], put="p"))
    assert "which says nothing without its coefficients; give pv" in said[0]
    assert "pv is no list of coefficients: expected all a, then all b" in said[1]
    assert "pv has 4 coefficients and its highest level is 3: expected all a" in said[2]
    assert ("edition 1 of GRIB has room for 255; use grib2" in said[3]) == (form == "grib1")
    assert said[4:] == ["", "", ""]
    for path, vct in (("o", True), ("n", False), ("p", True)):
        rows = tool("grib_get", "-p", "typeOfLevel,NV", tmp_path / path).splitlines()
        assert set(rows) == {f"hybrid {8 if vct else 0}"}, path
        text = tool("cdo", "-s", "zaxisdes", tmp_path / path)
        assert ("vctsize" in text) == vct, text


def test_coefficients_stay_with_the_levels_of_the_model(one_rank, tmp_path):
    """A stream may have fields on levels of pressure beside them."""
    assert one_rank({**HERE, "attributes": {"GRIB_pv": PV}}) == [""]
    assert set(tool("grib_get", "-p", "typeOfLevel,PVPresent", tmp_path / "o").splitlines()) == {
        "isobaricInhPa 0"}


@pytest.mark.parametrize("form", ["grib2", "grib1"])
def test_a_reduced_grid_with_its_places(one_rank, tmp_path, form):
    """set_lonlat says again where the rows are: that becomes no messages."""
    rows = [20 + 4 * min(i, 7 - i) for i in range(8)]
    lat = [float(value) for value, n in zip(gaussian(4), rows, strict=True) for _ in range(n)]
    lon = [360.0 * i / n for n in rows for i in range(n)]
    job = {**O4, "format": form, "lon": lon, "lat": lat}
    assert one_rank(job, {**job, "get": "o"}) == ["", ""]
    names = tool("grib_get", "-p", "shortName", tmp_path / "o").split()
    assert names == ["t"] * 2
    assert tool("grib_get", "-w", "shortName=t", "-p", "gridType,gridName", tmp_path / "o"
        ).splitlines() == ["reduced_gg O4"] * 2
    assert np.abs(np.load(tmp_path / "o.npy") - values_of(1, (208,))).max() < 0.01
    assert "gaussian_reduced" in tool("cdo", "-s", "griddes", tmp_path / "o")
    # of the whole file
    tool("cdo", "-s", "-f", "nc", "remapbil,r12x6", "-setgridtype,regular", tmp_path / "o",
        tmp_path / "o.nc")


def test_definitions_of_a_site_are_used(one_rank, tmp_path):
    """A parameter that only local definitions know, as a site has them: ECCODES_DEFINITION_PATH."""
    samples = tool("codes_info", "-d").strip()
    local = tmp_path / "definitions" / "grib2"
    local.mkdir(parents=True)
    for name, value in (("shortName", "dust"), ("paramId", "400001"), ("name", "Dust of the site"),
            ("units", "kg m**-3")):
        (local / f"{name}.def").write_text(
            f"'{value}' = {{ discipline = 0 ; parameterCategory = 192 ; parameterNumber = 7 ; }}\n")
    job = {**HERE, "attributes": {"GRIB_shortName": "dust"}, "units": "kg m-3",
        "standard_name": "mass_concentration_of_dust_dry_aerosol_particles_in_air"}
    (without,) = one_rank(job)
    assert "shortName = 'dust': ecCodes: " in without
    path = f"{tmp_path / 'definitions'}:{samples}"
    assert one_rank(job, {**job, "get": "o"}, ECCODES_DEFINITION_PATH=path) == ["", ""]
    words = "discipline,parameterCategory,parameterNumber"
    assert set(tool("grib_get", "-p", words, tmp_path / "o").splitlines()) == {"0 192 7"}
    assert set(tool("env", f"ECCODES_DEFINITION_PATH={path}", "grib_get", "-p", "shortName,units",
        tmp_path / "o").splitlines()) == {"dust kg m**-3"}
