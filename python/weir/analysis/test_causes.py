# SPDX-License-Identifier: Apache-2.0
"""What ranks that were waited for did meanwhile: lines come in pieces and are asked in the order of
time (those of whole runs: tests/reader/test_wall_time.py)."""

from __future__ import annotations

import numpy as np
import pytest

from weir.analysis.causes import Causes

STRANDS, STAYS = 40, 1500  # of each: more points than lie in one block


def stays(random: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Waits of strands, apart and rising: strand, awaited strand, begin, end."""
    edges = np.sort(random.integers(0, 10**9, (STRANDS, 2 * STAYS)), axis=1).reshape(-1, 2)
    strand = np.repeat(np.arange(STRANDS), STAYS)
    awaited = (strand + random.integers(1, STRANDS, len(strand))) % STRANDS
    is_wait = edges[:, 1] > edges[:, 0]
    return strand[is_wait], awaited[is_wait], *edges[is_wait].T


def lengths_at(points: np.ndarray, strand: int) -> list[np.ndarray]:
    """I/O, calls, and both of all threads: rising with time, each strand at a pace of its own."""
    io = points * (1 + strand) // (3 * STRANDS)
    return [io, io + points // 3, io, io + points // 2]


@pytest.mark.parametrize("at_once", [1, 7, STRANDS])
def test_lines_may_come_in_any_pieces(at_once):
    random = np.random.default_rng(5)
    waits = stays(random)
    asked = np.arange(STRANDS).repeat(2), np.tile([0, 10**9], STRANDS)
    causes, wanted = Causes(STRANDS, waits, asked), Causes(STRANDS, waits, asked)
    assert causes.first[-1] > 1 << 16
    for low in reversed(range(0, STRANDS, at_once)):
        high = min(low + at_once, STRANDS)
        parts = [lengths_at(causes.points(one), one) for one in range(low, high)]
        causes.give(low, high, [np.concatenate(part) for part in zip(*parts)])
    for one in range(STRANDS):
        wanted.give(one, one + 1, lengths_at(wanted.points(one), one))
    found = causes.run()
    assert (found == wanted.run()).all()
    last = found[1::2]
    assert (last["io_wait_ns"] > 0).all() and (last["imbalance_ns"] > 0).all()
    for strand in range(STRANDS):
        own = lengths_at(np.array([10**9]), strand)
        assert [last[key][strand] for key in ("io_ns", "calls_ns", "all_calls_ns")] == [
            own[0][0], own[1][0], own[3][0]]


def test_a_wait_is_what_the_awaited_strand_was_in():
    """Strand 0 waits from 100 to 200 for strand 1, which is in I/O until 160 and computes then."""
    causes = Causes(2, ([0], [1], [100], [200]), ([0, 0], [0, 300]))
    causes.give(0, 1, [np.clip(causes.points(0), 100, 200) - 100 if calls else causes.points(0) * 0
        for calls in (0, 1, 0, 1)])
    causes.give(1, 2, [np.minimum(causes.points(1), 160)] * 4)
    before, after = causes.run()
    assert before["io_wait_ns"] == before["imbalance_ns"] == 0
    assert (after["io_wait_ns"], after["imbalance_ns"], after["calls_ns"]) == (60, 40, 100)


def test_lengths_that_are_not_at_the_points_are_refused():
    causes = Causes(2, ([0], [1], [100], [200]), ([0], [300]))
    with pytest.raises(ValueError, match="points of their strands"):
        causes.give(0, 1, [np.zeros(1, np.int64)] * 4)
