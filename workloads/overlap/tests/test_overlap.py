# SPDX-License-Identifier: Apache-2.0
"""The overlap workload: sections that overlap, requests that fit no sector, contents that are
checked."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.any_mpi

HEADER, PLANE = 92, 84 * 84 * 8
SIZES = ("--planes", "24", "--variables", "2", "--ghost", "3")


def sections(ranks: int) -> list[range]:
    return [range(max(0, 24 * t // ranks - 3), min(24, 24 * (t + 1) // ranks + 3))
        for t in range(ranks)]


def test_the_file_is_what_it_says(case, tmp_path, pattern):
    path = tmp_path / "sections.dat"
    written = case("overlap", 3, "--setup", "--file", path, *SIZES)
    data = path.read_bytes()
    assert len(data) == HEADER + 2 * 24 * PLANE == written["bytes"]
    assert data[HEADER:] == pattern(2, 0, 2 * 24 * PLANE // 8).astype("<u8").tobytes()


@pytest.mark.parametrize("call", ["lseek", "pread"])
def test_every_plane_is_one_ill_formed_request(case, tmp_path, call):
    path = tmp_path / "sections.dat"
    case("overlap", 3, "--setup", "--file", path, *SIZES)
    trace = case.traced("read", "overlap", 3, "--file", path, "--call", call, *SIZES)
    reads = trace.of("read" if call == "lseek" else "pread", file=path)
    expected = sorted(HEADER + (24 * v + z) * PLANE for v in range(2) for section in sections(3)
        for z in section)
    assert sorted(r.offset for r in reads) == expected
    assert len(set(expected)) < len(expected), "nothing overlaps"
    assert {r.size for r in reads} == {PLANE}
    assert all(r.offset % 512 for r in reads)


def test_results_and_a_changed_byte(case, tmp_path):
    path = tmp_path / "sections.dat"
    case("overlap", 2, "--setup", "--file", path, *SIZES)
    run = case("overlap", 2, "--file", path, "--passes", "2", *SIZES)
    planes = 2 * 2 * sum(map(len, sections(2)))
    assert (run["requests"], run["bytes"], run["wrong"]) == (planes, planes * PLANE, 0)
    with open(path, "r+b") as file:
        file.seek(HEADER + 12 * PLANE)  # the first plane of rank 1, which rank 0 reads as well
        byte = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte[0] ^ 1]))
    done = case.start("overlap", 2, "--file", path, *SIZES)
    assert done.returncode != 0 and "wrong=2" in done.stdout


def test_a_file_that_is_too_short_is_named(case, tmp_path):
    path = tmp_path / "sections.dat"
    case("overlap", 2, "--setup", "--file", path, *SIZES)
    done = case.start("overlap", 2, "--file", path, "--planes", "25")
    assert done.returncode != 0 and str(path) in done.stderr
    assert case.start("overlap", 1, "--call").returncode == 2
