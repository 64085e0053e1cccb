# SPDX-License-Identifier: Apache-2.0
"""weir_get reads GRIB with the properties that files of archives and weather centres have: levels
in both editions, several fields in a message, members in any local definition, tables of centres,
values that complex packing leaves out, several products for one time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

eccodes = pytest.importorskip("eccodes", reason="the package eccodes is not installed",
    exc_type=(ImportError, RuntimeError))

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


def sections(whole: bytes) -> dict[int, bytes]:
    found, at = {}, 16
    while whole[at:at + 4] != b"7777":
        length = int.from_bytes(whole[at:at + 4], "big")
        found[whole[at + 4]] = whole[at:at + length]
        at += length
    return found


@pytest.mark.parametrize("left_out", [1, 3, 4, 5, 6])
def test_several_fields_in_a_message_without_a_section(one_rank, tmp_path, left_out):
    whole = message(2, 1, level=500)
    found = sections(whole)
    body = b"".join(found[number] for number in sorted(found) if number != left_out)
    body += b"".join(found[number] for number in (4, 5, 6, 7) if number != left_out) + b"7777"
    (tmp_path / "torn").write_bytes(whole[:8] + (16 + len(body)).to_bytes(8, "big") + body)
    (said,) = one_rank({**HERE, "levels": [500], "get": "torn"})
    assert "the message at byte 0 has sections that weir does not read" in said, said


def test_several_fields_in_a_message(one_rank, tmp_path):
    """As NCEP's u and v: sections 4 to 7 are repeated, sections 1 to 3 hold for both."""
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


def test_rows_of_another_length(one_rank, tmp_path):
    """As many points in other rows are another grid, whose values would be in other places."""
    lon, lat = np.meshgrid(np.arange(12.0), np.arange(24.0))
    (tmp_path / "wide").write_bytes(lambert(0))
    (said,) = one_rank({**HERE, "lon": lon.tolist(), "lat": lat.tolist(), "levels": [850],
        "get": "wide", "attributes": {"GRIB_gridType": "lambert"}})
    assert "on another grid, a grid of type 30 (24 x 12 points), than the field, which is on " \
        "a grid of type 30 (12 x 24 points)" in said, said


def test_levels_in_pa_of_edition_1(one_rank, tmp_path):
    """ECMWF's type of level 210 has a value, though those of centres mostly have none."""
    (tmp_path / "stratosphere").write_bytes(b"".join(message(1, at, typeOfLevel="isobaricInPa",
        level=at) for at in (70, 5)))
    job = {**HERE, "levels": [5, 70], "level_units": "Pa", "get": "stratosphere",
        "attributes": {"GRIB_typeOfLevel": "isobaricInPa"}}
    beyond, said = one_rank({**job, "record": 1}, job)
    assert said == "" and "record 1" in beyond, (said, beyond)
    found = there(tmp_path, "stratosphere")
    for i, at in enumerate((5, 70)):
        assert np.abs(found[i].ravel() - values(at)).max() < 1e-2


def test_an_order_of_editions_that_differs_between_levels(one_rank, tmp_path):
    def level(edition: int, at: int, hour: int) -> bytes:
        return message(edition, at + hour, level=at, dataTime=100 * hour)

    (tmp_path / "order").write_bytes(level(1, 850, 6) + level(2, 850, 12) + level(2, 500, 12)
        + level(1, 500, 6))
    (said,) = one_rank({**HERE, "levels": [850, 500], "get": "order"})
    assert "has its levels in another order of times" in said, said


def test_values_of_one_moment_at_a_level_and_means_at_another(one_rank, tmp_path):
    mean = {"productDefinitionTemplateNumber": 8, "typeOfStatisticalProcessing": 0}
    (tmp_path / "means").write_bytes(message(2, 1, level=850)
        + message(2, 2, level=500, **mean, stepRange="0-6"))
    (tmp_path / "editions").write_bytes(message(1, 1, level=850)
        + message(2, 2, level=850, **mean, stepRange="0-6"))
    said = one_rank({**HERE, "levels": [850, 500], "get": "means"},
        {**HERE, "levels": [850], "get": "editions"})
    for one in said:
        assert "which are not of one operation over time (stepType)" in one, one


def test_runs_in_another_order_at_a_level(one_rank, tmp_path):
    """Two runs have one time: their levels would be mixed."""
    def run(at: int, hour: int) -> bytes:
        return message(2, at + hour, level=at, dataTime=100 * hour, step=12 - hour)

    (tmp_path / "runs").write_bytes(run(850, 0) + run(850, 6) + run(500, 6) + run(500, 0))
    job = {**HERE, "levels": [850, 500], "get": "runs"}
    (said,) = one_rank(job)
    assert "which are of runs that began at different times, both with that time" in said, said
    assert one_rank({**job, "attributes": {"GRIB_where": "dataTime=600"}}) == [""]
    for i, at in enumerate((850, 500)):
        assert np.abs(there(tmp_path, "runs")[i].ravel() - values(at + 6)).max() < 0.1


def test_another_percentile_at_another_time(one_rank, tmp_path):
    percentile = {"productDefinitionTemplateNumber": 6}
    (tmp_path / "percentiles").write_bytes(b"".join(message(2, 1, **percentile,
        percentileValue=value, dataTime=60 * value) for value in (10, 20)))
    job = {**HERE, "levels": [850], "get": "percentiles"}
    (said,) = one_rank(job)
    assert "is in the file as several quantities" in said
    assert "which differ in percentileValue (10 and 20); say which" in said, said
    assert one_rank({**job, "attributes": {"GRIB_where": "percentileValue=10"}}) == [""]


def test_members_that_differ_between_levels(one_rank, tmp_path):
    (tmp_path / "levels").write_bytes(b"".join(message(2, member, level=at,
        productDefinitionTemplateNumber=1, perturbationNumber=member)
        for at, member in ((850, 3), (500, 5))))
    (said,) = one_rank({**HERE, "levels": [850, 500], "get": "levels"})
    assert "which are of members 3 and 5" in said, said


def test_a_number_that_is_another_parameter_at_another_centre(one_rank, tmp_path):
    """0.7.192 is one quantity of NCEP (7) and another of DWD (78)."""
    def own(centre: int, value: float) -> bytes:
        handle = eccodes.codes_new_from_message(message(2, value, centre=centre))
        for key, number in (("parameterCategory", 7), ("parameterNumber", 192)):
            eccodes.codes_set(handle, key, number)
        eccodes.codes_set_values(handle, values(value))
        return eccodes.codes_get_message(handle)

    (tmp_path / "dwd").write_bytes(own(78, 1))
    (tmp_path / "both").write_bytes(own(7, 1) + own(78, 2))
    number = eccodes.codes_get(eccodes.codes_new_from_message(own(7, 1)), "paramId", int)
    job = {**HERE, "levels": [850], "units": "", "standard_name": ""}
    wrong = one_rank({**job, "get": "dwd",
        "attributes": {"GRIB_centre": 7, "GRIB_paramId": number}})[0]
    assert "is not in the file" in wrong and "but of centre 78, where it is paramId" in wrong, wrong
    keys = {"GRIB_discipline": 0, "GRIB_parameterCategory": 7, "GRIB_parameterNumber": 192}
    (several,) = one_rank({**job, "get": "both", "attributes": keys})
    assert "in messages of the centres 7 and 78, which number parameters each for itself; say " \
        'which (grib = { where = "centre=78" }' in several, several
    for where, value in (("7", 1), ("edzw", 2)):
        assert one_rank({**job, "get": "both",
            "attributes": {**keys, "GRIB_where": f"centre={where}"}}) == [""]
        assert np.abs(there(tmp_path, "both").ravel() - values(value)).max() < 1e-2


def test_a_mean_with_a_number_of_its_own(one_rank, tmp_path):
    """NCEP's rates of convective precipitation: 0.1.37 now, 0.1.196 in means, one paramId."""
    def rate(value: float, number: int, **keys: object) -> bytes:
        handle = eccodes.codes_new_from_message(message(2, value, centre=7, **keys))
        eccodes.codes_set(handle, "parameterCategory", 1)
        eccodes.codes_set(handle, "parameterNumber", number)
        eccodes.codes_set_values(handle, values(value))
        return eccodes.codes_get_message(handle)

    mean = {"productDefinitionTemplateNumber": 8, "typeOfStatisticalProcessing": 0}
    (tmp_path / "rates").write_bytes(rate(1, 37) + rate(2, 196, **mean, stepRange="0-6"))
    job = {**HERE, "levels": [850], "units": "", "standard_name": "", "get": "rates"}
    number = {"GRIB_paramId": 260033}
    for keys, value in (({}, 1), ({f"GRIB_{key}": own for key, own in mean.items()}, 2)):
        assert one_rank({**job, "attributes": {**number, **keys}}) == [""]
        assert np.abs(there(tmp_path, "rates").ravel() - values(value)).max() < 1e-2


def test_a_type_of_level_of_a_centre(one_rank, tmp_path):
    """ecCodes leaves the level as it is where the centre has none: that would be the surface's."""
    cloud = message(2, 2, centre=7, typeOfFirstFixedSurface=212)
    (tmp_path / "ground").write_bytes(message(2, 1, centre=98, typeOfLevel="surface"))
    (tmp_path / "clouds").write_bytes(message(2, 1, centre=7, typeOfLevel="surface") + cloud)
    assert eccodes.codes_get(eccodes.codes_new_from_message(cloud), "typeOfLevel") \
        == "lowCloudBottom"
    job = {**HERE, "attributes": {"GRIB_paramId": 130, "GRIB_typeOfLevel": "lowCloudBottom"}}
    del job["levels"]
    ground, clouds, written = one_rank({**job, "get": "ground"}, {**job, "get": "clouds"},
        {**job, "type": "f4", "put": "new", "format": "grib2"})
    for said in (ground, written):
        assert "typeOfLevel 'lowCloudBottom' is none of centre" in said, said
        assert "the level stays 'surface'; give the centre that has it" in said, said
    assert clouds == ""
    assert np.abs(there(tmp_path, "clouds").ravel() - values(2)).max() < 1e-2


def test_a_message_without_data(one_rank, tmp_path):
    whole = message(2, 1)
    at = 16
    while whole[at + 4] != 7:
        at += int.from_bytes(whole[at:at + 4], "big")
    torn = whole[:at] + b"7777"
    (tmp_path / "torn").write_bytes(torn[:8] + len(torn).to_bytes(8, "big") + torn[16:])
    (said,) = one_rank({**HERE, "levels": [850], "get": "torn"})
    assert "the message at byte 0 has no section of data (7)" in said, said


def lambert(alternating: int) -> bytes:
    handle = eccodes.codes_grib_new_from_samples("GRIB2")
    for key, own in {"gridType": "lambert", "Nx": 24, "Ny": 12, "jScansPositively": 1,
            "alternativeRowScanning": alternating, "paramId": 130, "typeOfLevel": "isobaricInhPa",
            "level": 850}.items():
        eccodes.codes_set(handle, key, own)
    eccodes.codes_set_values(handle, values(5))
    return eccodes.codes_get_message(handle)
