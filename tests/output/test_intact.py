# SPDX-License-Identifier: Apache-2.0
"""Another program truncates, removes or renames the file that a run is writing: nothing that is not
whole gets the final name, and the error says what is there."""

from __future__ import annotations

import os
import re
import struct

import netCDF4
import pytest

pytestmark = pytest.mark.any_mpi

HERE = {"lon": [15.0 * i for i in range(24)], "lat": [82.5 - 15 * j for j in range(12)]}
GRIB = {"attributes": {"GRIB_paramId": "130"}}
PART = ".o.weir-part"


@pytest.mark.parametrize(("form", "cut"), [
    (form, cut) for form in ("cdf2", "cdf5", "netcdf4", "grib2") for cut in (0, 40, 500, -1)
])
def test_a_truncated_file_gets_no_final_name(one_rank, tmp_path, form, cut):
    """-1: of what the last value, or the last message, needs."""
    size = f"$(($(stat -c %s {PART}) - 1))" if cut < 0 else cut
    job = {**HERE, **GRIB, "put": "o", "format": form, "meanwhile": f"truncate -s {size} {PART}"}
    if form == "netcdf4" and cut < 0:  # there is room behind its last value
        job["meanwhile"] = f"truncate -s $(($(stat -c %s {PART}) - 5000)) {PART}"
    (said,) = one_rank(job)
    assert f"{tmp_path / PART} is not what was written: it has " in said
    assert re.search(r"it has \d+ bytes, expected \d+; another program has truncated", said), said
    assert "or replaced it. It keeps this name" in said
    assert not (tmp_path / "o").exists() and (tmp_path / PART).exists()


def zeros(path: str, at: int, count: int) -> str:
    """The command that writes them."""
    return f"dd if=/dev/zero of={path} bs=1 seek={at} count={count} conv=notrunc status=none"


@pytest.fixture
def damaged(one_rank, tmp_path):
    """``damaged(fields, places, bytes)``: the file that no other program meets, and for each place
    the error and the file that a run leaves in which zeros are written there meanwhile."""

    def go(fields: int, places, count: int):
        others = [{"name": f"f{i}"} for i in range(fields - 1)]
        job = {**HERE, "format": "netcdf4", "others": others}
        assert one_rank({**job, "put": "o"}) == [""]
        whole = tmp_path / "o"
        places = list(places(whole.read_bytes()))
        said = one_rank(*({**job, "put": f"o{i}", "meanwhile": zeros(f".o{i}.weir-part", at, count)}
            for i, at in enumerate(places)))
        for i in range(len(places)):
            assert (tmp_path / f"o{i}").exists() == (said[i] == "")
            assert (tmp_path / f".o{i}.weir-part").exists() != (said[i] == "")
        return whole, list(zip(places, said, (tmp_path / f"o{i}" for i in range(len(places))),
            strict=True))

    return go


@pytest.mark.parametrize("fields", [2, 70])
def test_metadata_that_another_program_has_overwritten(damaged, fields):
    """However many variables it has. What weir writes again is whole again."""
    def places(data: bytes):
        headers = [match.start() for match in re.finditer(b"air_temperature|OHDR", data)]
        return headers[2::max(1, len(headers) // 8)] + [data.index(struct.pack("<d", 82.5))]

    whole, cases = damaged(fields, places, 8)
    refused = 0
    for at, said, path in cases:
        if said == "":
            assert path.read_bytes() == whole.read_bytes(), at
            continue
        refused += 1
        first = int(re.search("has other metadata from byte (\\d+) on, expected those", said)[1])
        assert at <= first < at + 8
    assert refused > 0


@pytest.mark.parametrize("fields", [2, 70])
def test_what_passes_is_readable(damaged, fields):
    """Blocks anywhere in the file: it is refused, or read to its end by netCDF's own library."""
    whole, cases = damaged(fields, lambda data: range(0, len(data), len(data) // 24), 4096)
    with netCDF4.Dataset(whole) as data:
        names = {name: v.ncattrs() for name, v in data.variables.items()}
    assert len(names) == fields + 3
    passed = 0
    for _, said, path in cases:
        if said:
            continue
        passed += 1
        with netCDF4.Dataset(path) as data:
            assert {name: v.ncattrs() for name, v in data.variables.items()} == names
            assert all(v[:].size for v in data.variables.values())
    assert 0 < passed < len(cases)


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
