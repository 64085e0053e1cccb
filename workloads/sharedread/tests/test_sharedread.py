# SPDX-License-Identifier: Apache-2.0
"""The sharedread workload: every rank reads the whole variable through netCDF-C, in the library's
small pages."""

from __future__ import annotations

import math
import shutil

import numpy as np
import pytest

pytestmark = pytest.mark.any_mpi

SIZES = ("--times", "3", "--levels", "4")
SLAB = 91 * 181


@pytest.fixture
def path(case, tmp_path):
    file = tmp_path / "climate.nc"
    case("sharedread", 2, "--setup", "--file", file, *SIZES)
    return file


def test_the_file_is_what_it_says(case, path, pattern, execute):
    data = path.read_bytes()
    assert data[:4] == b"CDF\x01"
    count = 3 * 4 * SLAB
    values = np.frombuffer(data[len(data) - 4 * count :], ">f4")
    assert np.array_equal(values, (pattern(3, 0, count) >> np.uint64(40)).astype(np.float32))
    assert (len(data) - 4 * count) % 512, "the data begin at a sector boundary"
    if shutil.which("ncdump"):
        header = execute(["ncdump", "-h", path]).ok().stdout
        assert "float T(time, lev, lat, lon) ;" in header and "lon = 181 ;" in header


def test_all_ranks_read_all_of_it(case, path):
    run = case("sharedread", 3, "--file", path, *SIZES)
    assert (run["requests"], run["bytes"], run["wrong"]) == (3 * 12, 3 * 12 * SLAB * 4, 0)


def test_requests_are_pages_of_the_library(case, path):
    trace = case.traced("read", "sharedread", 2, "--file", path, *SIZES)
    size = path.stat().st_size
    for process in {r.process for r in trace.of("read", file=path)}:
        reads = [r for r in trace.of("read", file=path) if r.process == process]
        assert math.ceil(size / 8192) <= len(reads) <= math.ceil(size / 4096) + 12 * 2
        assert sum(r.size for r in reads) >= size


def test_a_buffer_of_another_size(case, path):
    small, large = (
        len(case.traced(f"chunk{chunk}", "sharedread", 1, "--file", path, "--chunk", chunk, *SIZES)
            .of("read", file=path))
        for chunk in (8192, 1376256)
    )
    assert small > 50 * large > 0


def test_a_changed_byte_and_other_sizes_are_found(case, path):
    with open(path, "r+b") as file:
        file.seek(-2, 2)
        byte = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte[0] ^ 1]))
    done = case.start("sharedread", 2, "--file", path, *SIZES)
    assert done.returncode != 0 and "wrong=2" in done.stdout
    other = case.start("sharedread", 2, "--file", path, "--times", "2")
    assert other.returncode != 0 and "other sizes" in other.stderr
