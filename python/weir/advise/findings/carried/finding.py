# SPDX-License-Identifier: Apache-2.0
"""Finding carried: files that one step writes for a later one, or that the run makes, reads and
removes, lie on the file system for results.

Whether a file is wanted after the run cannot be seen in a trace, but for one that the run removes:
it alone may stay on a tier. All others arrive at their place."""

from __future__ import annotations

from collections.abc import Iterator

from weir.advise.frame.bypass import UNNAMED
from weir.advise.frame.facts import Facts, File
from weir.advise.frame.finding import Advice, Finding, Limit, Rule
from weir.advise.frame.grouping import used_otherwise, without_chance_below
from weir.advise.frame.saving import Range
from weir.report.flow.compute import CARRIED, SCRATCH
from weir.report.flow.table import report_flow
from weir.report.frame.amounts import amount, counted, seconds
from weir.stage.suggest import DRAIN, Suggestion, suggestions

LARGE = Limit("size of what is written and read", 1 << 20, "B",
    "chosen: a megabyte moves in milliseconds on any file system")
SLOW_TIER_BYTES_PER_S = 0.2e9  # memory as a tier, of a node whose cores are busy (layer stage)
TIER_CALL_S = 20e-6  # open, close or stat of a file in memory, under the layer
# Seconds of a run that makes the tier: its directories, the daemon of drain=async. And of each
# opening and removal of a file on it. Measured with samtools: 7 openings take 20 to 290 ms at a
# load of 6 for each core.
OF_A_TIER, OF_AN_OPENING = Range(0.002, 0.05), Range(0.1e-3, 3e-3)
_REMOVALS = ("unlink", "unlinkat", "remove", "rename", "renameat", "renameat2")
_WORDS = {
    CARRIED: "written by one step and read by a later one",
    SCRATCH: "made, read and removed by the run",
}
_CHANGES = {
    CARRIED: "Keep the contents in memory, or let one program do both steps.",
    SCRATCH: "Write them to a directory in memory of the node ($TMPDIR), or keep the contents in "
             "memory.",
}
_LATER = "a file is at its place some seconds after it was closed"
_GONE = ("a file that a run does not remove stays on the tier, where a program without these rules "
         "does not find it")


def _part(facts: Facts, file: File) -> tuple[File, Range]:
    size = file.read.bytes + file.write.bytes
    calls = sum(one.calls for one in file.totals.ops) if file.totals is not None else 0
    slow = size / SLOW_TIER_BYTES_PER_S + calls * TIER_CALL_S
    return file, facts.on_tier(file, Range(size / facts.speeds(file.path, "write").copy, slow)
        + OF_AN_OPENING.times(file.of_class("O")[0] + file.of(_REMOVALS)[0]))


def begun(parts: list[tuple[File, Range]]) -> list[tuple[File, Range]]:
    """With what the tier takes once, which is counted on the first file."""
    (file, range_), *others = parts
    low, high = range_.low - OF_A_TIER.high, range_.high - OF_A_TIER.low
    return [(file, Range(max(0.0, low), max(0.0, high))), *others]


def _advice(facts: Facts, one: Suggestion, files: list[File]) -> Advice:
    size, is_scratch = one.bytes_written + one.bytes_read, one.role == SCRATCH
    path = without_chance_below(facts.report.cwd or "/", one.path) if is_scratch else one.path
    return Advice(
        "carried", facts.shown(one.path), tuple(file.path for file in files),
        f"{counted(one.files, 'file')} with {amount(size)} {'is' if one.files == 1 else 'are'} "
        f"{_WORDS[one.role]}: {seconds(sum(file.ns for file in files) / 1e9)} of all ranks.",
        facts.saving(begun([_part(facts, file) for file in files]), 0),
        _CHANGES[one.role],
        Rule(path, f"stage:tier={facts.tier}:drain={DRAIN[one.role]}",
            caution=_GONE if is_scratch else _LATER,
            unusable="" if not one.others else used_otherwise(one.others[0])),
    )  # fmt: skip


def find(facts: Facts) -> Iterator[Advice]:
    if facts.nodes > 1:
        return  # a tier is one node's
    flows = [file for row in report_flow(facts.report).rows for file in row.files]
    for one in suggestions(flows, facts.report.cwd or "/"):
        files = [facts.files[path] for path in one.paths if path in facts.files]
        size = one.bytes_written + one.bytes_read
        is_staged = not any(file.of(UNNAMED)[0] for file in files)
        if is_staged and one.role in _WORDS and size >= LARGE.value and files and one.bytes_read:
            found = _advice(facts, one, files)
            if found.saving.io.low > 0:  # the page cache is as fast as a tier in memory
                yield found


CARRIED_FILES = Finding(
    name="carried",
    asks="Do files that only later steps read, or that the run removes again, lie on the file "
         "system for results?",
    shrinks="I/O",
    limits=(LARGE,),
    page="guide/stage.md",
    table="flow",
    cure="stage",
    find=find,
)
