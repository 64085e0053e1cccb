# SPDX-License-Identifier: Apache-2.0
"""Finding interleaved-writes: what it is found in, what it is worth, which rule cures it;
and what has just less than its limits."""

from __future__ import annotations

from advised import KIB, US, advised, names
from wait_trace import WaitTrace


def test_pieces_of_ranks_in_turn_have_global(tmp_path):
    def program(trace: WaitTrace) -> None:
        for number in range(1000):
            for rank in range(trace.ranks):
                trace.io(rank, 500 * US, "/scratch/an/matrix.dat", "pwrite", 4 * KIB,
                    (number * trace.ranks + rank) * 4 * KIB)

    report = advised(tmp_path, program)
    assert names(report) == ["interleaved-writes"]
    (one,) = report.rules
    assert one.rule.stack == "global:2MiB:2" and one.rule.path == "/scratch/an/matrix.dat"
    assert one.saving.io.high <= 1.01
