# SPDX-License-Identifier: Apache-2.0
"""Facts of files: steps added up, and found once more when they were given up."""

from __future__ import annotations

from pathlib import Path

from weir.advise.frame.facts import Facts
from weir.report import build
from weir.trace._synthetic import TraceWriter, event


def write_step(run: Path, step: str, ranks: int, offset: int) -> None:
    """Each rank writes 100 bytes of /scratch/a twice, and reads as many of /scratch/b."""
    (run / step).mkdir(parents=True)
    with TraceWriter(run / step / "n.weir") as writer:
        for rank in range(ranks):
            process, at = writer.process(100 + rank, rank, ranks), writer.created_ticks
            a, b = process.name("/scratch/a"), process.name("/scratch/b")
            process.events([
                event("pwrite", at, 5, file=a, size=100, offset=offset),
                event("pwrite", at + 10, 5, file=a, size=100, offset=offset + 100),
                event("pread", at + 20, 7, file=b, size=100, offset=offset),
            ])  # fmt: skip


def test_steps_are_added_up_and_found_again_when_they_were_given_up(tmp_path):
    write_step(tmp_path / "run", "one", 3, 5000)
    write_step(tmp_path / "run", "two", 2, 1000)
    facts = Facts(build(tmp_path / "run"))
    file = facts.files["/scratch/a"]
    way = file.write
    assert (way.calls, way.bytes, way.first, way.adjacent) == (10, 1000, 5, 5)
    assert (way.ranks, way.users, way.steps) == (3, 5, 2)
    assert (way.begin, way.end, way.span) == (1000, 5200, 4200)
    assert file.of(("pwrite",))[0] == 10 and file.of_class("R") == (0, 0)
    assert (file.read.calls, file.read.begin, file.read.span) == (0, 2**62, 0)
    facts.forget()
    again = facts.files["/scratch/a"]
    assert again is not file and again.write.figures == way.figures
