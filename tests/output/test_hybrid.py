# SPDX-License-Identifier: Apache-2.0
"""Hybrid sigma-pressure levels in netCDF and Zarr: coefficients and formula as the CF conventions
have them, read by cdo, xarray with cf-xarray, and the CF checker."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import netCDF4
import numpy as np
import pytest
import xarray
from weir_one_rank import values_of

pytestmark = pytest.mark.any_mpi

LON, LAT = [15.0 * i for i in range(24)], [82.5 - 15 * j for j in range(12)]
A, B = [0.0, 2000.0, 1000.5, 0.0], [0.0, 0.25, 0.75, 1.0]
PV = " ".join(str(number) for number in A + B)
NAME = "atmosphere_hybrid_sigma_pressure_coordinate"
AXIS = {"standard_name": NAME, "GRIB_pv": PV}
PS = {"name": "aps", "standard_name": "surface_air_pressure", "units": "Pa"}
FORMATS = ["cdf2", "cdf5", "netcdf4", "zarr"]


def job(put="o", levels=(1, 2, 3), others=(PS,), axis=None, **more) -> dict:
    return {"lon": LON, "lat": LAT, "put": put, "levels": list(levels), "level_units": "1",
        "axis": axis or AXIS, "others": list(others), **more}


def opened(path) -> xarray.Dataset:
    engine = "zarr" if path.is_dir() else "netcdf4"
    if engine == "zarr":
        pytest.importorskip("zarr", reason="needs the test extra, on Python 3.11 or newer")
    return xarray.open_dataset(path, engine=engine, decode_times=False)


def zaxis(path) -> dict[str, str]:
    """cdo's description of the axis of hybrid levels."""
    if shutil.which("cdo") is None:
        pytest.skip("cdo is not installed")
    text = subprocess.run(["cdo", "-s", "zaxisdes", path], capture_output=True, text=True).stdout
    [found] = [one for one in text.split("# zaxisID") if "zaxistype = hybrid" in one]
    joined = re.sub(r"\n {5,}", " ", found)
    return {key: " ".join(value.split()) for key, value in re.findall(r"(\w+) *= *(.*)", joined)}


def floats(text: str) -> list[float]:
    return [float(word) for word in text.split()]


@pytest.mark.parametrize("form", FORMATS)
def test_levels_have_their_formula_and_coefficients(one_rank, tmp_path, form):
    assert one_rank(job(format=form), job(get="o", put="x")) == ["", ""]
    assert np.array_equal(np.load(tmp_path / "o.npy"), values_of(1, (3, 12, 24)))
    with opened(tmp_path / "o") as data:
        lev, bounds = data["lev"], data["lev_bnds"]
        assert lev.attrs["standard_name"] == NAME and lev.attrs["positive"] == "down"
        assert lev.attrs["formula_terms"] == "ap: hyam b: hybm ps: aps"
        assert bounds.attrs["formula_terms"] == "ap: hyam_bnds b: hybm_bnds ps: aps"
        assert "GRIB_pv" not in lev.attrs and bounds.values.tolist() == [[0.5, 1.5], [1.5, 2.5],
            [2.5, 3.5]]
        for letter, interfaces, units in (("a", A, "Pa"), ("b", B, "1")):
            full = data[f"hy{letter}m"]
            assert full.dims == ("lev",) and full.attrs["units"] == units
            assert full.values.tolist() == [sum(pair) / 2 for pair in zip(interfaces,
                interfaces[1:], strict=False)]
            assert data[full.attrs["bounds"]].values.tolist() == [list(pair) for pair in zip(
                interfaces, interfaces[1:], strict=False)]
            assert data[f"hy{letter}i"].values.tolist() == interfaces
            assert data[f"hy{letter}i"].dims == ("nhyi",)


@pytest.mark.parametrize("form", FORMATS)
def test_readers_derive_the_pressure(one_rank, tmp_path, form):
    cf_xarray = pytest.importorskip("cf_xarray",
        reason="needs the test extra, on Python 3.11 or newer")
    assert one_rank(job(format=form)) == [""]
    with opened(tmp_path / "o") as data:
        assert cf_xarray.__version__
        data.cf.decode_vertical_coords(outnames={"lev": "p"})
        middle = [np.convolve(one, [0.5, 0.5], "valid")[:, None, None] for one in (A, B)]
        for record in range(2):
            expected = middle[0] + middle[1] * values_of(record, (12, 24))
            found = data["p"].isel(time=record).transpose("lev", "lat", "lon")
            np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_iris_derives_the_pressure(one_rank, tmp_path):
    iris = pytest.importorskip("iris", reason="scitools-iris is not installed")
    assert one_rank(job("o.nc", format="netcdf4")) == [""]
    cube = iris.load_cube(str(tmp_path / "o.nc"), "air_temperature")
    pressure = cube.coord("air_pressure")
    middle = [np.convolve(one, [0.5, 0.5], "valid")[:, None, None] for one in (A, B)]
    order = [cube.coord_dims(pressure).index(d) for d in (0, 1, 2, 3)]
    np.testing.assert_allclose(pressure.points.transpose(order)[1],
        middle[0] + middle[1] * values_of(1, (12, 24)), rtol=1e-6)
    assert pressure.has_bounds()


@pytest.mark.parametrize("form", ["cdf2", "cdf5", "netcdf4"])
def test_cdo_knows_the_levels(one_rank, tmp_path, form):
    """With surface pressure by CF's formula, without it by ECHAM's names."""
    by_number = {"standard_name": NAME, "GRIB_pv": PV, "positive": "down"}
    assert one_rank(job(format=form), job("n", others=[], format=form, axis=by_number),
        job("p", (2, 3), format=form), job("q", (2, 3), [], format=form)) == [""] * 4
    for path, levels in (("o", [1, 2, 3]), ("n", [1, 2, 3]), ("p", [2, 3]), ("q", [2, 3])):
        axis = zaxis(tmp_path / path)
        assert floats(axis["levels"]) == levels, path
        first = levels[0] - 1
        assert floats(axis["vct"]) == A[first:] + B[first:], path
        assert axis["vctsize"] == str(2 * (len(levels) + 1))


def test_cf_checker_finds_no_error(one_rank, tmp_path):
    pytest.importorskip("compliance_checker",
        reason="needs the test extra, on Python 3.11 or newer")
    by_hand = {"axis": AXIS | {"formula_terms": "ps: aps"}}
    half = {"name": "w", "standard_name": "upward_air_velocity", "units": "m s-1",
        "levels": [0.5, 1.5, 2.5, 3.5], "axis": AXIS}
    jobs = [job("with.nc"), job("without.nc", others=[]), job("part.nc", (1, 3)),
        job("named.nc", **by_hand), job("down.nc", (3, 2, 1)), job("half.nc", others=[half, PS])]
    assert one_rank(*jobs) == [""] * len(jobs)
    checker = Path(sys.executable).parent / "compliance-checker"
    done = subprocess.run([checker, "--test", "cf:1.11", *(one["put"] for one in jobs)],
        cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert len(re.findall(r"^ +cf:1\.11 *$", done.stdout, re.M)) == len(jobs), done.stderr
    assert re.search(r"^ +Errors *$", done.stdout, re.M) is None, done.stdout


def test_without_surface_pressure_there_is_no_formula(one_rank, tmp_path):
    """An omitted term would be zero."""
    eta = {"levels": [0.15, 0.5, 0.9], "axis": AXIS}
    assert one_rank(job("n", others=[]), job(**eta | {"put": "e", "others": []})) == ["", ""]
    with netCDF4.Dataset(tmp_path / "n") as file, netCDF4.Dataset(tmp_path / "e") as other:
        assert "formula_terms" not in file["lev"].ncattrs() + file["lev_bnds"].ncattrs()
        assert file["lev"].standard_name == "model_level_number"
        assert file["lev"].long_name == "hybrid level at layer midpoints"
        assert file["hyam"][:].tolist() == [1000, 1500.25, 500.25]
        # values of the coordinate are no numbers of levels
        assert "standard_name" not in other["lev"].ncattrs()
        assert other["hybm"][:].tolist() == [0.125, 0.5, 0.875]


def test_some_of_the_levels_have_their_own_coefficients(one_rank, tmp_path):
    assert one_rank(job("p", (1, 3)), job("d", (3, 2, 1))) == ["", ""]
    with netCDF4.Dataset(tmp_path / "p") as part, netCDF4.Dataset(tmp_path / "d") as down:
        assert part["hyam"][:].tolist() == [1000, 500.25]
        # layers 1 and 3 have no common list of interfaces
        assert "bounds" not in part["lev"].ncattrs()
        assert not {"hyai", "hyam_bnds", "lev_bnds"} & set(part.variables)
        assert down["hybm"][:].tolist() == [0.875, 0.5, 0.125]
        assert down["hybi"][:].tolist() == B[::-1]
        assert down["hybm_bnds"][:].tolist() == [[1, 0.75], [0.75, 0.25], [0.25, 0]]
        assert down["lev_bnds"][:].tolist() == [[3.5, 2.5], [2.5, 1.5], [1.5, 0.5]]


def test_interfaces_are_levels_too(one_rank, tmp_path):
    half = {"name": "w", "units": "m s-1", "levels": [1, 2, 3, 4], "axis": AXIS}
    assert one_rank(job(others=[half, PS])) == [""]
    with netCDF4.Dataset(tmp_path / "o") as file:
        assert file["lev_w"].formula_terms == "ap: hyai b: hybi ps: aps"
        assert file["lev_w"].long_name == "hybrid level at layer interfaces"
        assert file["hyai"].dimensions == ("lev_w",) and file["hyai"][:].tolist() == A
        assert file["lev"].formula_terms == "ap: hyam b: hybm ps: aps"
        assert "nhyi" not in file.dimensions


def test_two_axes_have_coefficients_of_their_own(one_rank, tmp_path):
    more = {"name": "q", "units": "1", "levels": [1, 2], "axis": AXIS}
    assert one_rank(job(others=[more, PS])) == [""]
    with netCDF4.Dataset(tmp_path / "o") as file:
        assert file["lev"].formula_terms == "ap: hyam_lev b: hybm_lev ps: aps"
        assert file["lev_q"].formula_terms == "ap: hyam_lev_q b: hybm_lev_q ps: aps"
        assert file["hyam_lev_q"][:].tolist() == [1000, 1500.25]


def test_bounds_of_the_program_stay(one_rank, tmp_path):
    eta = {"levels": [0.1, 0.5, 0.9]}
    axis = AXIS | {"bounds": [[0, 0.3], [0.3, 0.7], [0.7, 1]]}
    assert one_rank(job(**eta, axis=axis)) == [""]
    with netCDF4.Dataset(tmp_path / "o") as file:
        assert file["lev_bnds"][0].tolist() == [0, 0.3]
        assert file["lev_bnds"].formula_terms == "ap: hyam_bnds b: hybm_bnds ps: aps"
    assert floats(zaxis(tmp_path / "o")["vct"]) == A + B


REFUSED = [
    (job(axis=AXIS | {"GRIB_pv": "0 1 2"}), "GRIB_pv is no list of coefficients: expected all a"),
    (job(axis=AXIS | {"GRIB_pv": "0, 1, 2, 3"}), "GRIB_pv is no list of coefficients"),
    (job(levels=(3, 4, 5)), "it has level 5, and GRIB_pv has 3 levels"),
    (job(levels=(0.2, 0.9)), "its 2 values are no numbers of levels, and GRIB_pv has 3 levels"),
    (job(axis=AXIS | {"formula_terms": "ps: psl"}),
        "names 'psl', which is no field of the program"),
    (job(axis=AXIS | {"formula_terms": "ap: x b: y ps: aps"}), "expected 'ps: NAME'"),
    (job(others=[PS | {"units": "hPa"}]),
        "surface pressure 'aps' is in 'hPa', and the coefficients"),
    (job(attributes={"GRIB_pv": "0 1 0 1"}, levels=[1], others=[PS | {"name": "hyai"}]),
        "two things would be called hyai"),
    (job(attributes={"GRIB_pv": "0 1 0 1"}, levels=[1], others=[PS, {"name": "u", "units": "m s-1",
        "on": "t"}]), "fields 't' and 'u' have different GRIB_pv; give it to the axis alone"),
]


@pytest.mark.parametrize(("wrong", "says"), REFUSED, ids=range(len(REFUSED)))
def test_what_does_not_fit_is_refused_at_the_end_of_definitions(one_rank, tmp_path, wrong, says):
    [said] = one_rank(wrong)
    assert says in said, said
    assert not list(tmp_path.glob("*o*"))


def test_grib_has_neither_formula_nor_variables(one_rank, tmp_path):
    grib = job("g", format="grib2", others=[])
    assert one_rank(grib, grib | {"put": "h", "axis": AXIS | {"formula_terms": "ps: none"}}
        ) == ["", ""]
    assert (tmp_path / "g").read_bytes() == (tmp_path / "h").read_bytes()
