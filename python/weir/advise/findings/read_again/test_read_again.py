# SPDX-License-Identifier: Apache-2.0
"""Finding read-again: what it is found in, what it is worth, which rule cures it;
and what has just less than its limits."""

from __future__ import annotations

from advised import KIB, MS, advised
from wait_trace import WaitTrace


def test_a_file_that_a_rank_reads_again_is_kept(tmp_path):
    def program(trace: WaitTrace) -> None:
        for _ in range(4):
            for at in range(100):
                trace.io(0, MS, "/scratch/an/integrals", "pread", 192 * KIB, at * 192 * KIB)

    report = advised(tmp_path, program)
    (one,) = report.rules
    assert one.finding == "read-again" and one.rule.stack == "global:1MiB:20"
