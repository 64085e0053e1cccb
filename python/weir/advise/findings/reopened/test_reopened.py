# SPDX-License-Identifier: Apache-2.0
"""Finding reopened: what it is found in, what it is worth, which rule cures it;
and what has just less than its limits."""

from __future__ import annotations

from advised import MS, advised
from wait_trace import WaitTrace


def test_a_file_that_is_opened_for_each_line_has_keep(tmp_path):
    def program(trace: WaitTrace) -> None:
        for _ in range(200):
            for op, size in (("open", 0), ("write", 80), ("close", 0)):
                trace.io(0, MS, "/scratch/an/run.log", op, size)

    report = advised(tmp_path, program)
    (one,) = report.rules
    assert (one.finding, one.rule.stack) == ("reopened", "keep")
    assert 0.4 < one.saving.io.low < one.saving.io.high <= 0.61
