# SPDX-License-Identifier: Apache-2.0
"""Finding too-many-cores: steps of one program with several numbers of ranks."""

from __future__ import annotations

import pytest
from advised import MIB, MS, S, advise_on, names, the
from wait_trace import WaitTrace


def steps(*tried: tuple[int, float], bytes_of=lambda ranks: 64 * MIB):
    """Each: ranks of the one node, and how long each of them computes."""

    def made(number: int, ranks: int, compute_s: float) -> WaitTrace:
        trace = WaitTrace(ranks)
        trace.begin_ns = number * 100 * S
        trace.now = [trace.begin_ns] * ranks
        trace.barrier()
        for rank in range(ranks):
            trace.compute(rank, int(compute_s * S))
            trace.io(rank, MS, f"/scratch/an/out.{rank}", "pwrite", bytes_of(ranks) // ranks, 0)
        trace.barrier()
        return trace

    return [made(number, *one) for number, one in enumerate(tried)]


def test_ranks_that_make_it_no_faster_are_found(tmp_path):
    report = advise_on(tmp_path, *steps((4, 2.0), (8, 1.0), (16, 1.2)))
    one = the(report, "too-many-cores")
    assert one.what == "step s2" and one.step == "s2" and "with 8 ranks of a node" in one.change
    assert one.saving.critical.high == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize("made", [
    steps((4, 2.0), (8, 1.0), (16, 0.5)),  # more ranks, less time
    steps((4, 2.0)),  # one step tells nothing
    steps((4, 2.0), (8, 2.1), bytes_of=lambda ranks: ranks * MIB)])  # twice the work
def test_a_program_that_scales_or_cannot_be_compared_is_not(tmp_path, made):
    assert "too-many-cores" not in names(advise_on(tmp_path, *made))
