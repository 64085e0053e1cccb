# SPDX-License-Identifier: Apache-2.0
"""Finding uneven-io: what it is found in, what it is worth, which rule cures it;
and what has just less than its limits."""

from __future__ import annotations

from advised import MIB, MS, advised, the
from wait_trace import WaitTrace

from weir.advise.text import expectation, finding_line


def test_ranks_with_more_to_write_than_others_are_found(tmp_path):
    def program(trace: WaitTrace) -> None:
        for rank in range(4):
            for at in range(10 * (1 + 3 * (rank == 3))):
                trace.io(rank, 5 * MS, f"/scratch/an/r{rank}", "pwrite", MIB, at * MIB)

    report = advised(tmp_path, program, ranks=4, compute_s=0.2)
    one = the(report, "uneven-io")
    assert one.what == "rank 3 in step s0" and one.saving.critical.high < 0.13
    # it may save nothing: the lines state what decides
    assert one.saving.critical.low == 0
    decides = ("0 s to 112 ms of the run, depending on how well the file system serves all ranks "
        "at once")
    assert finding_line(one).replace("\u00a0", " ").endswith(f"would save {decides}.")
    assert expectation(one).replace("\u00a0", " ").startswith(decides)
