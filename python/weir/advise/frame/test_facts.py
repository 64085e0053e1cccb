# SPDX-License-Identifier: Apache-2.0
"""Facts of files: steps added up, and found once more when they were given up."""

from __future__ import annotations

from pathlib import Path

from weir.advise.frame.facts import Facts
from weir.advise.frame.saving import Range
from weir.report import build
from weir.trace._synthetic import TraceWriter, event

MS = 1_000_000  # ticks


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


def write_threads(run: Path, at: dict[int, int]) -> Facts:
    """A program without MPI whose threads each write a file for 40 ms, from their time on; its
    first thread ends last, with a write of 10 ms."""
    (run / "main").mkdir(parents=True)
    with TraceWriter(run / "main" / "n.weir") as writer:
        process, begin = writer.process(100), writer.created_ticks
        for thread, ms in ({100: 900} | at).items():
            file = process.name(f"/scratch/{thread}")
            process.events([event("pwrite", begin + ms * MS, (10 if thread == 100 else 40) * MS,
                file=file, size=100)], thread=thread)
    return Facts(build(run))


def test_threads_may_delay_the_run_while_the_first_one_makes_no_call(tmp_path):
    alone = write_threads(tmp_path / "alone", {})
    beside = write_threads(tmp_path / "beside", {101: 100, 102: 120})
    for facts, most_ms in ((alone, 10), (beside, 70)):
        parts = [(file, Range(file.ns / 1e9, file.ns / 1e9)) for file in facts.files.values()]
        found = facts.saving(parts, 0).critical
        assert round(1e3 * found.low) == 10 and round(1e3 * found.high) == most_ms
