# SPDX-License-Identifier: Apache-2.0
"""Finding rewritten-files: small files that the run makes are opened anew for each piece that it
writes and reads, as stores of arrays and transactions of version control do. Layer keep holds no
file that is written other than at its end; in an archive of layer pack all these calls are in
memory."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping

import numpy as np

from weir.advise.findings.many_files.finding import CONTAINER, SMALL
from weir.advise.frame.bypass import UNNAMED, is_left_alone
from weir.advise.frame.facts import Facts, File, Files
from weir.advise.frame.finding import Advice, Finding, Limit, Rule
from weir.advise.frame.grouping import used_otherwise, without_chance_below
from weir.advise.frame.saving import NOTHING, Range, saved
from weir.analysis.patterns import find_patterns
from weir.report.flow.compute import CARRIED, OUTPUT, SCRATCH
from weir.report.flow.table import report_flow
from weir.report.frame.amounts import counted, seconds
from weir.stage.suggest import fits, rule_pattern

TIMES = Limit("opens of a file that is read and written, on average", 4, "opens",
    "chosen: the file system still gets the create and the close of each file when the archive is "
    "extracted")
MANY = Limit("opens of these files together", 100, "opens",
    "chosen: fewer take less than a tenth of a second on a parallel file system")
STORED = Limit("size of the files times their opens, at most", 64 << 20, "B",
    "each close after a write adds the whole file to the archive")
# Of the time of the calls under layer pack. Measured with TileDB and svnadmin load, preset lustre:
# 0.05 of the requests for the files.
REMAINS = Range(0.02, 0.25)
# Opens that a file takes which is extracted when the run ends: its name is looked up, it is made.
EXTRACTED = Range(1.0, 3.0)
_MADE = (OUTPUT, SCRATCH, CARRIED)


def _candidates(files: Files) -> np.ndarray:
    opens = files.of_class("O")[0]
    return ((files.write.bytes > 0) & (files.read.bytes > 0) & (opens >= TIMES.value)
        & (files.write.span <= SMALL.value))


def _is_one(facts: Facts, file: File, removed: Mapping[str, bool]) -> bool:
    return file.path in removed and not is_left_alone(file) and not facts.is_local(file.path)


def _part(file: File, is_removed: bool) -> tuple[File, Range]:
    if file.of(UNNAMED)[0]:  # a real file, in whose way fewer others are
        return file, saved(file.ns / 1e9, Range(0.0, file.ns / 1e9))
    opens, open_ns = file.of_class("O")
    extracted = NOTHING if is_removed or not opens else EXTRACTED.times(open_ns / 1e9 / opens)
    return file, saved(file.ns / 1e9, REMAINS.times(file.ns / 1e9) + extracted)


def _unusable(facts: Facts, pattern: str, removed: Mapping[str, bool]) -> str:
    """Why the rule stands commented out: it also matches files with bytes that are there before the
    run. Directories, and names that are only asked for, have none."""
    moved = facts.files.paths_of((facts.files.read.bytes > 0) | (facts.files.written > 0))
    other = next((path for path in sorted(moved) if path not in removed and fits(path, pattern)),
        None)
    return used_otherwise(other) if other else ""


def _advice(facts: Facts, shown: str, pattern: str, files: list[File],
        removed: Mapping[str, bool]) -> Advice:
    opens, ns = sum(one.of_class("O")[0] for one in files), sum(one.ns for one in files)
    return Advice(
        "rewritten-files", facts.shown(shown), tuple(one.path for one in files),
        f"the run makes {counted(len(files), 'small file')} and opens "
        f"{'it' if len(files) == 1 else 'them'} {counted(opens, 'time')} to write and read: "
        f"{seconds(ns / 1e9)}.",
        facts.saving([_part(one, removed[one.path]) for one in files],
            int(0.8 * sum(one.totals.calls for one in files if one.totals is not None))),
        "Leave each file open, or keep its contents in memory and write it once; make files that "
        "the run removes in memory of the node ($TMPDIR).",
        Rule(pattern, f"pack:name={CONTAINER}:extract=onexit",
            caution="the files are in an archive until the last process of the node ends; programs "
                    "without these rules find them after that",
            unusable=_unusable(facts, pattern, removed)),
    )  # fmt: skip


def _is_many(files: list[File]) -> bool:
    opens = [one.of_class("O")[0] for one in files]
    stored = sum(count * one.write.span for count, one in zip(opens, files))
    return (sum(opens) >= max(MANY.value, TIMES.value * len(files)) and stored <= STORED.value)


def find(facts: Facts) -> Iterator[Advice]:
    """By directory: what belongs together there differs in its names. Not on several nodes, as each
    has an archive of its own."""
    mask = _candidates(facts.files)
    if facts.nodes > 1 or not mask.any():
        return
    removed = {file.file: file.removed for row in report_flow(facts.report).rows
        for file in row.files if file.role in _MADE}
    directories = list(dict.fromkeys(posixpath.dirname(one.path) for one in facts.among(mask)
        if _is_one(facts, one, removed)))
    made = np.flatnonzero((facts.files.written > 0) & facts.are_bare)
    by_directory: dict[str, list[File]] = {one: [] for one in directories}
    for at in made.tolist():
        path = facts.files.paths[at]
        if (its := by_directory.get(posixpath.dirname(path))) is not None and path in removed:
            its.append(facts.files[path])
    for group in find_patterns(directories, [0] * len(directories)):
        members = [directories[at] for at in group.members]
        files = [file for one in members for file in by_directory[one]]
        if _is_many(files):
            pattern = without_chance_below(facts.report.cwd or "/", rule_pattern(group.text,
                members))
            yield _advice(facts, f"{group.text}/*", f"{pattern}/*", files, removed)


REWRITTEN_FILES = Finding(
    name="rewritten-files",
    asks="Are small files that the run makes opened anew for each piece that is written and read?",
    shrinks="I/O",
    limits=(TIMES, MANY, STORED, SMALL),
    page="guide/pack.md",
    table="files",
    cure="pack",
    find=find,
)
