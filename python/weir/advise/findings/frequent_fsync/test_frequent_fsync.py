# SPDX-License-Identifier: Apache-2.0
"""Finding frequent-fsync: what it is found in, what it is worth, which rule cures it;
and what has just less than its limits."""

from __future__ import annotations

from advised import KIB, MS, advised, the
from wait_trace import WaitTrace


def test_fsync_for_each_record_is_a_change_of_the_model(tmp_path):
    def program(trace: WaitTrace) -> None:
        for number in range(50):
            trace.io(0, MS, "/scratch/an/restart", "pwrite", 64 * KIB, number * 64 * KIB)
            trace.io(0, 10 * MS, "/scratch/an/restart", "fsync", 0)

    one = the(advised(tmp_path, program), "frequent-fsync")
    assert one.rule is None and "50 fsyncs" in one.sentence and one.saving.requests == 49
