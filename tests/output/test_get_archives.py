# SPDX-License-Identifier: Apache-2.0
"""weir_get reads GRIB with the properties that files of archives and weather centres have: levels
in both editions, several fields in a message, members in any local definition, tables of centres,
values that complex packing leaves out, several products for one time."""

from __future__ import annotations

from pathlib import Path

import eccodes
import numpy as np
import pytest

pytestmark = pytest.mark.any_mpi

LEVELS = [850, 500, 250]
HERE = {"lon": [15.0 * i for i in range(24)], "lat": [82.5 - 15 * j for j in range(12)],
    "levels": LEVELS, "type": "f8"}
POINTS = 12 * 24


def message(edition: int, value: float, **keys: object) -> bytes:
    """One on the grid above: value + 0, 1, ... 16 in turns."""
    handle = eccodes.codes_grib_new_from_samples(f"GRIB{edition}")
    for key, own in ({"dataDate": 20250101, "Ni": 24, "Nj": 12,
            "latitudeOfFirstGridPointInDegrees": 82.5,
            "longitudeOfFirstGridPointInDegrees": 0, "latitudeOfLastGridPointInDegrees": -82.5,
            "longitudeOfLastGridPointInDegrees": 345, "iDirectionIncrementInDegrees": 15,
            "jDirectionIncrementInDegrees": 15} | keys).items():
        eccodes.codes_set(handle, key, own)
    if "paramId" not in keys and "indicatorOfParameter" not in keys:
        eccodes.codes_set(handle, "paramId", 130)
    if "typeOfLevel" not in keys and "typeOfFirstFixedSurface" not in keys:
        eccodes.codes_set(handle, "typeOfLevel", "isobaricInhPa")
        eccodes.codes_set(handle, "level", keys.get("level", 850))
    if "packingType" in keys:
        eccodes.codes_set(handle, "packingType", keys["packingType"])
    eccodes.codes_set_values(handle, values(value))
    whole = eccodes.codes_get_message(handle)
    eccodes.codes_release(handle)
    return whole


def values(value: float) -> np.ndarray:
    return value + np.arange(POINTS) % 17.0


def there(directory: Path, name: str) -> np.ndarray:
    return np.load(directory / f"{name}.npy")


def test_levels_in_both_editions(one_rank, tmp_path):
    """As of MARS: some levels of a field in edition 1, the others in edition 2."""
    def level(edition: int, at: int, hour: int) -> bytes:
        return message(edition, LEVELS.index(at) * 100 + hour, level=at, dataTime=100 * hour)

    parts = {"mixed": (1, 2, 1), "mixed2": (2, 1, 1)}
    for name, editions in parts.items():
        (tmp_path / name).write_bytes(b"".join(level(edition, at, hour) for hour in (6, 12)
            for edition, at in zip(editions, LEVELS, strict=True)))
    first = b"".join(level(1, at, 6) for at in LEVELS[:2])
    files = {"lacks": first[:len(first) // 2] + level(2, 500, 6), "twice": first + level(2, 500, 6)
        + level(2, 250, 6), "uneven": first + level(2, 250, 6) + level(2, 250, 12),
        "other-time": first + level(2, 250, 12)}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    assert one_rank(*({**HERE, "get": name} for name in parts)) == ["", ""]
    for name in parts:
        for at in range(3):
            assert np.abs(there(tmp_path, name)[at].ravel() - values(100 * at + 12)).max() < 1e-2
    lacks, twice, uneven, other_time = one_rank(*({**HERE, "get": name} for name in files))
    assert "in edition 1 at the levels 850, and in edition 2 at 500, and not at 250: " in lacks
    assert "the level 500 is in both; take it out of one of them (grib_copy -w)" in twice
    assert "with 1 and 2 messages a level; expected as many at each level" in uneven
    assert "record 0 would have the messages at bytes 0 and " in other_time
    assert "which are of different times" in other_time


def test_several_fields_in_a_message(one_rank, tmp_path):
    """As NCEP's u and v: sections 4 to 7 are repeated, sections 1 to 3 hold for both."""
    def sections(whole: bytes) -> dict[int, bytes]:
        found, at = {}, 16
        while whole[at:at + 4] != b"7777":
            length = int.from_bytes(whole[at:at + 4], "big")
            found[whole[at + 4]] = whole[at:at + length]
            at += length
        return found

    u, v = (message(2, value, paramId=number, level=500)
        for number, value in ((131, 1), (132, 200)))
    joined = u[:-4] + b"".join(sections(v)[number] for number in (4, 5, 6, 7)) + b"7777"
    joined = joined[:8] + len(joined).to_bytes(8, "big") + joined[16:]
    (tmp_path / "uv").write_bytes(message(2, 50) + joined + message(2, 80, level=500))
    wind = {**HERE, "levels": [500], "units": "m s-1", "get": "uv"}
    jobs = [{**wind, "standard_name": f"{way}_wind", "attributes": {"GRIB_paramId": number}}
        for number, way in ((131, "eastward"), (132, "northward"))]
    jobs.append({**HERE, "levels": [500], "get": "uv"})
    for job, value in zip(jobs, (1, 200, 80), strict=True):
        assert one_rank(job) == [""]
        assert np.abs(there(tmp_path, "uv").ravel() - values(value)).max() < 1e-2
    (again,) = one_rank({**HERE, "type": "f4", "put": "uv", "format": "grib2",
        "existing": "append", "begin": 7200})
    assert "cannot go on with" in again and "several fields in one message" in again


def test_values_that_complex_packing_leaves_out(one_rank, tmp_path):
    """Without a bitmap: numbers of the packing stand for them (template 5.3, as NDFD has it)."""
    expected = values(270)
    expected[[0, 5, 100]] = np.nan
    handle = eccodes.codes_new_from_message(message(2, 270, bitsPerValue=12))
    eccodes.codes_set(handle, "packingType", "grid_complex_spatial_differencing")
    eccodes.codes_set(handle, "missingValueManagementUsed", 1)
    eccodes.codes_set(handle, "missingValue", 9999)
    eccodes.codes_set_values(handle, np.where(np.isnan(expected), 9999, expected))
    whole = eccodes.codes_get_message(handle)
    (tmp_path / "complex").write_bytes(whole)
    assert eccodes.codes_get(handle, "bitmapPresent") == 0
    assert eccodes.codes_get(handle, "missingValueManagementUsed") == 1
    assert one_rank({**HERE, "levels": [850], "get": "complex"}) == [""]
    found = there(tmp_path, "complex").ravel()
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    assert np.nanmax(np.abs(found - expected)) < 1e-1


@pytest.mark.parametrize("definition", [36, 26, 30, 12])
def test_members_in_local_definitions_of_edition_1(one_rank, tmp_path, definition):
    """ERA5's ensemble (36), hindcasts (26, 30), seasonal forecasts (12): 0 is a member, too."""
    (tmp_path / "members").write_bytes(b"".join(message(1, 10 * member,
        localDefinitionNumber=definition, perturbationNumber=member)
        for member in (0, 1, 2)))
    job = {**HERE, "levels": [850], "get": "members"}
    *said, none = one_rank(*({**job, "attributes": {"GRIB_number": member}} for member in (0, 2)),
        job)
    assert said == ["", ""]
    assert np.abs(there(tmp_path, "members").ravel() - values(20)).max() < 1e-2
    assert one_rank({**job, "attributes": {"GRIB_number": 0}}) == [""]
    assert np.abs(there(tmp_path, "members").ravel() - values(0)).max() < 1e-2
    assert "is in the file as members 0, 1, 2 of an ensemble" in none


def test_a_parameter_in_another_table_of_edition_1(one_rank, tmp_path):
    """NCEP and others have temperature as 11 of the WMO's tables, ECMWF as 130 of its own."""
    for name, table in (("first", 1), ("second", 2)):
        (tmp_path / name).write_bytes(message(1, 3, centre=7, table2Version=table,
            indicatorOfParameter=11))
    for name in ("first", "second"):
        assert one_rank({**HERE, "levels": [850], "get": name,
            "attributes": {"GRIB_paramId": 130}}) == [""]
        assert np.abs(there(tmp_path, name).ravel() - values(3)).max() < 1e-2


def test_several_products_for_one_time(one_rank, tmp_path):
    """Percentiles, analysis and forecast, experiments: one is to be named, by where."""
    percentile = {"productDefinitionTemplateNumber": 6}
    files = {
        "percentiles": [("percentileValue=10", message(2, 10, **percentile, percentileValue=10)),
            ("percentileValue=90", message(2, 90, **percentile, percentileValue=90))],
        "analysis": [("dataType=an", message(1, 1, dataType="an", dataTime=1200)),
            ("dataType=fc", message(1, 2, dataType="fc", dataTime=0, step=12))],
        "experiments": [("expver=0001", message(1, 3, experimentVersionNumber="0001")),
            ("expver=0078", message(1, 4, experimentVersionNumber="0078"))],
    }
    job = {**HERE, "levels": [850]}
    for name, parts in files.items():
        (tmp_path / name).write_bytes(b"".join(whole for _, whole in parts))
        (several,) = one_rank({**job, "get": name})
        key = parts[0][0].split("=")[0]
        assert "more than once for one time" in several and f"which differ in {key} (" in several
        assert f'grib = {{ where = "{parts[1][0]}" }}' in several, several
        for where, whole in parts:
            assert one_rank({**job, "get": name, "attributes": {"GRIB_where": where}}) == [""]
            handle = eccodes.codes_new_from_message(whole)
            expected = eccodes.codes_get_values(handle)
            assert np.array_equal(there(tmp_path, name).ravel(), expected), (name, where)
    other, wrong = one_rank(*({**job, "get": "analysis", "attributes": {"GRIB_where": where}}
        for where in ("dataType=em", "dataType")))
    assert "but not where dataType=em; there is dataType: an, fc" in other
    assert "where is 'dataType'; expected keys of ecCodes and their values" in wrong


def test_a_sum_of_two_intervals_that_end_together(one_rank, tmp_path):
    """As NCEP has precipitation: since the begin of the run, and of the last hours."""
    rain = {"productDefinitionTemplateNumber": 8, "typeOfStatisticalProcessing": 1,
        "paramId": 228228, "typeOfFirstFixedSurface": 1}
    (tmp_path / "rain").write_bytes(b"".join(message(2, 10 * first, **rain,
        stepRange=f"{first}-12") for first in (0, 6)))
    job = {**HERE, "get": "rain", "units": "kg m-2", "standard_name": "",
        "attributes": {"GRIB_paramId": 228228, "GRIB_typeOfLevel": "surface"}}
    del job["levels"]
    (several,) = one_rank(job)
    assert "which differ in startStep (0 and 6)" in several, several
    job["attributes"]["GRIB_where"] = "startStep=6"
    assert one_rank(job) == [""]
    assert np.abs(there(tmp_path, "rain").ravel() - values(60)).max() < 1e-2


def test_rows_of_a_projection_that_alternate(one_rank, tmp_path):
    """As NDFD has them: each second row is turned, as on grids of longitudes and latitudes."""
    lon, lat = np.meshgrid(np.arange(24.0), np.arange(12.0))
    for name, alternating in (("plain", 0), ("alternating", 1)):
        (tmp_path / name).write_bytes(lambert(alternating))
    job = {**HERE, "lon": lon.tolist(), "lat": lat.tolist(), "levels": [850],
        "attributes": {"GRIB_gridType": "lambert"}}
    assert one_rank(*({**job, "get": name} for name in ("plain", "alternating"))) == ["", ""]
    plain, alternating = (there(tmp_path, name)[0] for name in ("plain", "alternating"))
    assert np.abs(plain.ravel() - values(5)).max() < 1e-2
    plain = plain.copy()
    plain[1::2] = plain[1::2, ::-1]
    assert np.array_equal(alternating, plain)


def lambert(alternating: int) -> bytes:
    handle = eccodes.codes_grib_new_from_samples("GRIB2")
    for key, own in {"gridType": "lambert", "Nx": 24, "Ny": 12, "jScansPositively": 1,
            "alternativeRowScanning": alternating, "paramId": 130, "typeOfLevel": "isobaricInhPa",
            "level": 850}.items():
        eccodes.codes_set(handle, key, own)
    eccodes.codes_set_values(handle, values(5))
    return eccodes.codes_get_message(handle)
