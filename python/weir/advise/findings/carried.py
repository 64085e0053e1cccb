# SPDX-License-Identifier: Apache-2.0
"""Finding carried: files that one step writes for a later one alone, or that are made and read
within a step, lie on the file system for results."""

from __future__ import annotations

from collections.abc import Iterator

from weir.advise.frame.facts import Facts, File
from weir.advise.frame.finding import Advice, Finding, Rule
from weir.advise.frame.saving import MEMORY_BYTES_PER_S, Range, saved
from weir.report.findings.finding import Limit
from weir.report.flow.compute import CARRIED, SCRATCH
from weir.report.flow.table import report_flow
from weir.report.frame.amounts import amount, number, seconds
from weir.stage.suggest import Suggestion, suggestions

LARGE = Limit("bytes that are written and read", 1 << 20,
    "chosen: a megabyte moves in milliseconds on any file system")
SLOW_TIER_BYTES_PER_S = 0.2e9  # memory as a tier, of a node whose cores are busy (layer stage)
TIER_CALL_S = 20e-6  # open, close or stat of a file in memory, under the layer
_WORDS = {
    CARRIED: "are written by one step and read by a later one alone",
    SCRATCH: "are made and read within one step and used by nobody else",
}


def _part(file: File) -> tuple[File, Range]:
    size = file.read.bytes + file.write.bytes
    calls = sum(one.calls for one in file.totals.ops) if file.totals is not None else 0
    return file, saved(file.ns / 1e9, Range(size / MEMORY_BYTES_PER_S,
        size / SLOW_TIER_BYTES_PER_S + calls * TIER_CALL_S))


def _advice(facts: Facts, one: Suggestion, files: list[File]) -> Advice:
    size = one.bytes_written + one.bytes_read
    return Advice(
        "carried", facts.shown(one.path), tuple(file.path for file in files),
        f"{number(one.files)} files with {amount(size)} {_WORDS[one.role]}: "
        f"{seconds(sum(file.ns for file in files) / 1e9)} of all ranks.",
        facts.saving([_part(file) for file in files], 0),
        "Write them to a directory on the node, or keep their contents in memory.",
        Rule(one.path, f"stage:tier={facts.tier}:drain=never",
            caution="the files stay on the tier: a program without these rules, or on another "
                    "node, does not find them",
            unusable="" if not one.others else
            f"the pattern would match files that are used otherwise, such as {one.others[0]}"),
    )  # fmt: skip


def find(facts: Facts) -> Iterator[Advice]:
    if facts.nodes > 1:
        return  # a tier is one node's
    flows = [file for row in report_flow(facts.report).rows for file in row.files]
    for one in suggestions(flows, facts.report.cwd or "/"):
        files = [facts.files[path] for path in one.paths if path in facts.files]
        size = one.bytes_written + one.bytes_read
        if one.role in _WORDS and size >= LARGE.value and files and one.bytes_read:
            yield _advice(facts, one, files)


CARRIED_FILES = Finding(
    name="carried",
    asks="Do files that only later steps read lie on the file system for results?",
    shrinks="I/O",
    limits=(LARGE,),
    page="guide/stage.md",
    cure="stage",
    find=find,
)
