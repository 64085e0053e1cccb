# SPDX-License-Identifier: Apache-2.0
"""Another program truncates, removes or renames the file that a run is writing: nothing that is not
whole gets the final name, and the error says what is there."""

from __future__ import annotations

import os

import pytest

pytestmark = pytest.mark.any_mpi

HERE = {"lon": [15.0 * i for i in range(24)], "lat": [82.5 - 15 * j for j in range(12)]}
GRIB = {"attributes": {"GRIB_paramId": "130"}}
PART = ".o.weir-part"


@pytest.mark.parametrize(("form", "found"), [
    ("cdf2", "it has 00 00 00 00 at byte 0, expected 43 44 46 02"),
    ("cdf5", "it has 00 00 00 00 at byte 0, expected 43 44 46 05"),
    ("netcdf4", "it has damaged metadata (cannot open "),
    ("grib2", "it has 00 00 00 00 at byte 0, expected 47 52 49 42"),
])
def test_a_truncated_file_gets_no_final_name(one_rank, tmp_path, form, found):
    job = {**HERE, **GRIB, "put": "o", "format": form, "meanwhile": f": > {PART}"}
    (said,) = one_rank(job)
    assert f"{tmp_path / PART} is not what was written: " in said and found in said
    assert "another program has truncated or replaced it. It keeps this name" in said
    assert not (tmp_path / "o").exists() and (tmp_path / PART).stat().st_size > 0


@pytest.mark.parametrize("bytes", [40, 500])
def test_a_classic_header_that_is_cut_behind_its_beginning(one_rank, tmp_path, bytes):
    job = {**HERE, "put": "o", "format": "cdf5", "meanwhile": f"truncate -s {bytes} {PART}"}
    (said,) = one_rank(job)
    assert "it has another header, expected the header with which it was created" in said
    assert not (tmp_path / "o").exists()


def test_a_file_of_another_program_gets_no_final_name(one_rank, tmp_path):
    job = {**HERE, "put": "o", "format": "cdf5",
        "meanwhile": f"rm {PART}; echo a longer text than four bytes > {PART}"}
    (said,) = one_rank(job)
    assert "it has 61 20 6c 6f at byte 0" in said
    assert (tmp_path / PART).read_text().startswith("a longer text")


@pytest.mark.parametrize(("meanwhile", "found"), [
    (": > PART/lat/zarr.json", "zarr.json is not what was written: it has other metadata of 0"),
    (": > PART/lat/c.0", "lat/c.0 is not what was written: it has 0 bytes, expected 96"),
    ("rm PART/lon/c.0", "lon/c.0, which was written, has gone"),
])
def test_a_store_that_another_program_has_damaged(one_rank, tmp_path, meanwhile, found):
    job = {**HERE, "put": "o", "format": "zarr", "meanwhile": meanwhile.replace("PART", PART)}
    (said,) = one_rank(job)
    assert found in said
    assert not (tmp_path / "o").exists() and (tmp_path / PART).is_dir()


@pytest.mark.parametrize("form", ["cdf5", "netcdf4", "grib2"])
@pytest.mark.parametrize("meanwhile", ["rm PART", "mv PART elsewhere", "mv ../d ../moved"])
def test_a_file_that_has_gone_is_named(one_rank, tmp_path, form, meanwhile):
    os.mkdir(tmp_path / "d")
    command = meanwhile.replace("PART", PART)
    job = {**HERE, **GRIB, "put": "d/o", "format": form, "meanwhile": f"cd d; {command}"}
    (said,) = one_rank(job)
    assert f"{tmp_path / 'd' / PART}, which was written, has gone" in said
    assert "another program has removed or renamed it or its directory" in said
    assert not (tmp_path / "d" / "o").exists()
