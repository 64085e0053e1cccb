# SPDX-License-Identifier: Apache-2.0
"""Finding lock-step-creates: ranks in a queue at a directory, and ranks that do not stand in it."""

from __future__ import annotations

import pytest
from advised import MS, S, advised, names, the
from wait_trace import WaitTrace

EACH = 20 * MS  # of the server for one create


def creating(queue: bool, ranks: int, apart: int = 0, directory: str = "/scratch/an"):
    """Each rank creates a file, behind those of lower ranks where there is a queue."""

    def program(trace: WaitTrace) -> None:
        for rank in range(ranks):
            trace.compute(rank, rank * apart)
            path = f"{directory.format(rank)}/restart.{rank}"
            trace.io(rank, EACH * (rank + 1 if queue else 1), path, "creat", 0)
            trace.io(rank, MS, path, "write", 1000)

    return program


def test_creates_in_a_queue_are_found_with_what_the_queue_costs(tmp_path):
    report = advised(tmp_path, creating(True, 8), ranks=8, compute_s=0.2)
    one = the(report, "lock-step-creates")
    assert one.what == "." or one.what.endswith("an")
    assert "8 ranks create 8 files at the same time: 720 ms" in one.sentence.replace("\u00a0", " ")
    # 20 + 40 + ... + 160 ms; each alone takes little more than 20
    assert 0.4 < one.saving.io.high < 0.56 and one.saving.io.low == 0
    assert one.rule is None and len(one.paths) == 8


@pytest.mark.parametrize(("program", "ranks"), [
    (creating(True, 3), 3),  # too few
    (creating(False, 8), 8),  # the server makes them side by side
    (creating(False, 8, apart=S // 10), 8),  # one after the other
    (creating(True, 8, directory="/scratch/an/{}"), 8),  # each in a directory of its own
])
def test_creates_that_are_in_no_queue_are_not(tmp_path, program, ranks):
    assert "lock-step-creates" not in names(advised(tmp_path, program, ranks=ranks, compute_s=0.2))
