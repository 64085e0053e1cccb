# SPDX-License-Identifier: Apache-2.0
"""Finding node-interleaving: ranks in order that together are not."""

from __future__ import annotations

import pytest
from advised import KIB, MS, advised, names, the
from wait_trace import WaitTrace


def reading(each: int, together: bool, size: int = 512 * KIB):
    """Each rank reads a file of its own in order; one after the other, or at the same time."""

    def program(trace: WaitTrace) -> None:
        for rank in range(trace.ranks):
            trace.compute(rank, rank * (100_000 if together else each * 2 * MS))
            for at in range(each):
                trace.io(rank, 2 * MS, f"/scratch/an/in.{rank}", "pread", size, at * size)

    return program


def test_streams_of_a_node_that_mix_are_found(tmp_path):
    one = the(advised(tmp_path, reading(600, True), ranks=4), "node-interleaving")
    assert one.what == "node n0 in step s0" and len(one.paths) == 4
    said = one.sentence.replace("\u00a0", " ")
    assert "of 2,400 requests of 4 ranks 100 % begin where the previous one of the rank" in said
    assert one.saving.io.high == pytest.approx(0.5 * 4 * 600 * 2e-3, rel=0.01)


@pytest.mark.parametrize(("each", "together", "ranks"), [
    (600, False, 4),  # one rank after the other
    (400, True, 4),  # too few requests
    (1100, True, 2)])  # two streams
def test_streams_that_do_not_mix_are_not(tmp_path, each, together, ranks):
    report = advised(tmp_path, reading(each, together), ranks=ranks, compute_s=0.1)
    assert "node-interleaving" not in names(report)
