# SPDX-License-Identifier: Apache-2.0
"""The matrix workload: three ways of writing, one file; a request for each piece of a column where
there is no view."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.any_mpi

ROWS, COLUMNS = 530, 60  # no multiple of the number of ranks
SIZES = ("--rows", str(ROWS), "--columns", str(COLUMNS))


@pytest.mark.parametrize("mode", ["noview", "view", "collective"])
def test_every_mode_writes_the_matrix(case, tmp_path, pattern, mode):
    path = tmp_path / "matrix.dat"
    run = case("matrix", 4, "--file", path, "--mode", mode, *SIZES)
    assert (run["requests"], run["bytes"]) == (4 * COLUMNS if mode == "noview" else 4,
        ROWS * COLUMNS * 8)
    assert path.read_bytes() == pattern(4, 0, ROWS * COLUMNS).astype("<u8").tobytes()
    assert case("matrix", 3, "--file", path, "--verify", *SIZES)["wrong"] == 0


def test_without_a_view_each_piece_is_a_system_request(case, tmp_path):
    path = tmp_path / "matrix.dat"
    trace = case.traced("write", "matrix", 4, "--file", path, *SIZES)
    writes = [r for op in ("pwrite", "write") for r in trace.of(op, layer="posix", file=path)]
    starts = [ROWS * t // 4 for t in range(5)]
    expected = sorted((8 * (ROWS * c + starts[t]), 8 * (starts[t + 1] - starts[t]))
        for c in range(COLUMNS) for t in range(4))
    assert sorted((r.offset, r.size) for r in writes) == expected


def test_a_collective_write_makes_few_requests(case, tmp_path):
    path = tmp_path / "matrix.dat"
    trace = case.traced("write", "matrix", 4, "--file", path, "--mode", "collective", *SIZES)
    writes = [r for op in ("pwrite", "write") for r in trace.of(op, layer="posix", file=path)]
    assert 0 < len(writes) <= 8
    assert sum(r.size for r in writes) == ROWS * COLUMNS * 8


def test_a_changed_byte_and_a_wrong_size_are_found(case, tmp_path):
    path = tmp_path / "matrix.dat"
    case("matrix", 2, "--file", path, *SIZES)
    with open(path, "r+b") as file:
        file.seek(8 * 777)
        byte = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte[0] ^ 1]))
    done = case.start("matrix", 2, "--file", path, "--verify", *SIZES)
    assert done.returncode != 0 and "wrong=1" in done.stdout
    other = case.start("matrix", 2, "--file", path, "--verify", "--rows", "531", "--columns",
        str(COLUMNS))
    assert other.returncode != 0 and "size of the matrix" in other.stderr
