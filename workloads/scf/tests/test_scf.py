# SPDX-License-Identifier: Apache-2.0
"""The scf workload: records as they were written, requests of the size of libgfortran's buffer, no
changed byte unseen."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import pytest

pytestmark = pytest.mark.any_mpi

SIZES = ("--megabytes", "1.5")
BUFFER = 196608


def records(path: Path) -> list[int]:
    """Integrals of each record, with the sign of the last one, by walking over the markers."""
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        (length, count) = struct.unpack_from("<ii", data, at)
        assert length == 4 + 12 * abs(count)
        assert struct.unpack_from("<i", data, at + 4 + length) == (length,)
        found.append(count)
        at += length + 8
    return found


def test_each_rank_reads_its_own_file_in_every_iteration(case, tmp_path):
    written = case("scf", 3, "--setup", "--dir", tmp_path, *SIZES)
    files = sorted(tmp_path.glob("integrals.*"))
    counts = [records(path) for path in files]
    assert [f.name for f in files] == ["integrals.0000", "integrals.0001", "integrals.0002"]
    assert all(len(c) > 50 and c[-1] < 0 and min(c[:-1]) > 0 for c in counts)
    assert len(set(map(tuple, counts))) == 3, "the files do not differ"
    assert written["requests"] == sum(map(len, counts)) and written["wrong"] == 0

    run = case("scf", 3, "--dir", tmp_path, "--iterations", "2", "--compute", "0.05", *SIZES)
    assert run["requests"] == 2 * written["requests"] and run["wrong"] == 0
    assert run["bytes"] == 2 * sum(f.stat().st_size for f in files)
    assert run["mpp_s"] >= 3 * 2 * 0.05


def test_requests_are_those_of_the_library_buffer(case, tmp_path):
    case("scf", 2, "--setup", "--dir", tmp_path, *SIZES)
    trace = case.traced(
        "read", "scf", 2, "--dir", tmp_path, "--iterations", "3", *SIZES,
        env={"GFORTRAN_UNFORMATTED_BUFFER_SIZE": str(BUFFER)}
    )
    for path in tmp_path.glob("integrals.*"):
        reads = [r for r in trace.of("read", file=path) if r.size]
        once = math.ceil(path.stat().st_size / BUFFER)
        assert 3 * once <= len(reads) <= 3 * (once + 1)
        assert sum(r.size == BUFFER for r in reads) >= 3 * (once - 1)


def test_a_changed_byte_is_found(case, tmp_path):
    case("scf", 2, "--setup", "--dir", tmp_path, *SIZES)
    path = tmp_path / "integrals.0001"
    data = bytearray(path.read_bytes())
    first = records(path)[0]
    data[8 + 4 * first + 3] ^= 1  # in the values of the first record
    path.write_bytes(data)
    done = case.start("scf", 2, "--dir", tmp_path, "--iterations", "1", *SIZES)
    assert done.returncode != 0 and "wrong=1" in done.stdout


def test_the_matrix_does_not_depend_on_the_run(case, tmp_path):
    case("scf", 2, "--setup", "--dir", tmp_path, *SIZES)
    lines = {case.start("scf", 2, "--dir", tmp_path, "--iterations", "2", *SIZES).ok().stdout
        .splitlines()[1] for _ in range(2)}
    assert len(lines) == 1 and "energy=" in next(iter(lines))


def test_what_it_does_not_know_is_refused(case, tmp_path):
    assert case.start("scf", 1, "--megabits", "3").returncode == 2
    assert "no such option" in case.start("scf", 1, "--megabits", "3").stderr
    missing = case.start("scf", 2, "--dir", tmp_path / "none", *SIZES)
    assert missing.returncode != 0 and "integrals.000" in missing.stderr
