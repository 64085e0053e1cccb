# SPDX-License-Identifier: Apache-2.0
"""Collectives that do not block, begun in time by a rank that does I/O before it waits for them."""

from __future__ import annotations

import pytest
from wait_trace import WaitTrace

from weir.report import build
from weir.report.waits.summary import synchronisation_of

SECOND = 10**9


def figures(program: WaitTrace, tmp_path) -> tuple[float, float, float, float]:
    """In MPI, waited, on the critical path and critical; seconds."""
    waits = synchronisation_of(build(program.write(tmp_path / "run" / "s")).steps[0]).waits
    return tuple(round(ns / SECOND, 6) for ns in (waits.waiting_ns, waits.waited_ns, waits.path_ns,
        waits.critical_ns))


def begun(ranks: int = 4) -> WaitTrace:
    program = WaitTrace(ranks)
    program.start_barrier()
    program.io(0, SECOND // 2)
    for rank in range(1, ranks):
        program.compute(rank, SECOND // 4)
    return program


def test_nobody_is_done_before_the_last_one_waits_too_so_its_io_was_waited_for(tmp_path):
    program = begun()
    program.came = max(program.now)  # nothing moves while rank 0 is not within MPI
    for rank in range(4):
        program.wait_barrier(rank)
    program.compute(3, SECOND)
    assert figures(program, tmp_path) == (0.75, 0.75, 0.5, 0.25)


def test_others_are_done_before_so_it_was_hidden(tmp_path):
    program = begun()
    for rank in range(4):
        program.wait_barrier(rank)
    program.compute(3, SECOND)
    assert figures(program, tmp_path) == (0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("unknown", [0, 3])
def test_where_one_completion_is_not_known_nothing_is_concluded(tmp_path, unknown):
    """It was found by MPI_Test, which leaves no record."""
    program = begun()
    program.came = max(program.now)
    for rank in set(range(4)) - {unknown}:
        program.wait_barrier(rank)
    program.compute(2, SECOND)
    assert figures(program, tmp_path)[1:] == (0.0, 0.0, 0.0)


def test_io_before_the_beginning_counts_as_ever(tmp_path):
    program = WaitTrace(3)
    program.io(0, SECOND)
    program.start_barrier()
    program.compute(0, SECOND)
    program.came = max(program.now)
    for rank in (1, 2, 0):
        program.wait_barrier(rank)
    assert figures(program, tmp_path) == (4.0, 2.0, 1.0, 1.0)
