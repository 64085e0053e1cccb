# SPDX-License-Identifier: Apache-2.0
"""Finding same-bytes: what it is found in, what it is worth, which rule cures it;
and what has just less than its limits."""

from __future__ import annotations

from advised import KIB, MIB, MS, advised, names, stream
from wait_trace import WaitTrace


def test_ranks_that_read_the_same_bytes_have_global(tmp_path):
    report = advised(tmp_path, stream(1000, 64 * KIB, 700, "/scratch/an/climate.nc", "pread"),
        ranks=4)
    assert names(report)[0] == "same-bytes"
    (one,) = report.rules
    assert one.rule.stack.startswith("global:") and "4.0 times each byte" in one.sentence


def test_ranks_that_read_their_parts_have_not(tmp_path):
    def program(trace: WaitTrace) -> None:
        for rank in range(trace.ranks):
            for at in range(100):
                trace.io(rank, 2 * MS, "/scratch/an/climate.nc", "pread", MIB,
                    (rank * 100 + at) * MIB)

    assert names(advised(tmp_path, program)) == []
