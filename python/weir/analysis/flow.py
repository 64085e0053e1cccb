# SPDX-License-Identifier: Apache-2.0
"""Data flow between steps: who read and wrote which file in which step, where each read's bytes came from, what is only carried along.

The transfer matrix is that of the ECMWF reference (DESIGN section 5). Everything comes from the columns that the other tables are
computed from: bytes and seconds of a file are those of its line in the table of files. A read's bytes are those of the step whose writing
of the file began last before it; whether it read just those bytes of the file only offsets could tell. Where a task's reading begins
before a writing and ends after it, records decide if there are any, and else where it began.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from weir.analysis.columns import Columns, starts
from weir.analysis.names import NO_NAME, NameTable, shown
from weir.analysis.patterns import Pattern, find_patterns
from weir.trace.ops import op_named

INPUT, OUTPUT, CARRIED, SCRATCH, UPDATED, RENAMED = ROLES = ("input", "output", "carried", "scratch", "updated", "renamed")
_READ, _WRITE, _OTHER = range(3)
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class FlowStep:
    """One step to look at. tasks: all ranks of the step, whether columns has I/O of theirs or not; columns: I/O on files."""

    name: str
    tasks: frozenset[int]
    columns: Columns


@dataclass
class Use:
    """What one step did with one file, or with all files of a row. read and written: bytes by task (-1: no task), none of them 0."""

    read: dict[int, int] = field(default_factory=dict)
    written: dict[int, int] = field(default_factory=dict)
    read_ns: int = 0
    write_ns: int = 0
    other_ns: int = 0
    reads_lasted: dict[int, tuple[int, int]] = field(default_factory=dict)  # by task: from the first call to the end of the last one
    writes_began: int | None = None

    @property
    def bytes_read(self) -> int:
        return sum(self.read.values())

    @property
    def bytes_written(self) -> int:
        return sum(self.written.values())

    @property
    def ns(self) -> int:
        return self.read_ns + self.write_ns + self.other_ns

    @property
    def direction(self) -> str:
        """r, w, rw, or nothing where no byte moved."""
        return "r" * bool(self.read) + "w" * bool(self.written)


class Edge(NamedTuple):
    """Bytes of one file that a task of to_step read. from_step: index of the step that wrote them, None: they were there before."""

    from_step: int | None
    writers: tuple[int, ...]
    to_step: int
    reader: int
    bytes: int


@dataclass(frozen=True)
class FileFlow:
    """One file whose bytes moved. number: of its name. uses: one entry for each step. removed: its name was unlinked in the run."""

    number: int
    file: str
    text: str
    uses: tuple[Use | None, ...]
    edges: tuple[Edge, ...]
    role: str
    removed: bool


class Passage(NamedTuple):
    """All edges of a row between two steps."""

    from_step: int | None
    to_step: int
    writers: frozenset[int]
    readers: frozenset[int]
    files: int
    bytes: int


@dataclass(frozen=True)
class Row:
    """A line of the matrix: files of one pattern that each step treats alike, added up."""

    pattern: Pattern
    files: tuple[FileFlow, ...]
    uses: tuple[Use | None, ...]

    @property
    def role(self) -> str:
        return self.files[0].role

    def sum(self, figure: str) -> int:
        """Of bytes_read, bytes_written, read_ns, write_ns, other_ns or ns over the steps."""
        return sum(getattr(use, figure) for use in self.uses if use is not None)

    @property
    def bytes(self) -> int:
        return self.sum("bytes_read") + self.sum("bytes_written")

    @cached_property
    def passages(self) -> list[Passage]:
        """By step read in, then by step written in; what was there before the run first."""
        found: dict[tuple[int, int], list] = {}
        for file in self.files:
            for edge in file.edges:
                key = (edge.to_step, -1 if edge.from_step is None else edge.from_step)
                one = found.setdefault(key, [{}, set(), set(), 0])
                one[0][id(edge.writers)] = edge.writers  # all edges from one writing share it
                one[1].add(edge.reader)
                one[2].add(file.file)
                one[3] += edge.bytes
        return [
            Passage(None if came < 0 else came, to, frozenset().union(*writers.values()), frozenset(readers), len(files), count)
            for (to, came), (writers, readers, files, count) in sorted(found.items())
        ]


@dataclass(frozen=True)
class Flow:
    """rows: most bytes first. renamed: written or read under names that another name took over; mapped: moved by mmap, unseen."""

    steps: tuple[str, ...]
    tasks: tuple[frozenset[int], ...]
    rows: tuple[Row, ...]
    renamed: tuple[str, ...]
    mapped: tuple[str, ...]

    @property
    def files(self) -> int:
        return sum(len(row.files) for row in self.rows)

    def of(self, role: str) -> list[Row]:
        return [row for row in self.rows if row.role == role]


def who(tasks: Iterable[int], everyone: frozenset[int]) -> str:
    """The reference's word for a set of tasks of a step: 0, sev, all; one other task by its number; processes that are none: other."""
    found = set(tasks)
    ranks = {task for task in found if task >= 0}
    if not ranks:
        word = ""
    elif len(ranks) == 1:
        word = str(min(ranks))
    else:
        word = "all" if ranks >= {task for task in everyone if task >= 0} else "sev"
    return "+".join(filter(None, (word, "other" if -1 in found else "")))


# For a step and instants by name: bytes that each (name, task) read before the first instant, between it and the next one, ..., after the last.
Split = Callable[[int, dict[int, list[int]]], dict[tuple[int, int], list[int]]]


def flow(
    steps: Sequence[FlowStep], names: NameTable, cwd: str | None = None, wanted: Iterable[int] | None = None, split: Split | None = None
) -> Flow:
    """The flow of all files whose bytes moved; wanted: of these names alone. cwd: names below it are shown without it. split: asked for
    files that a step reads before and after they are written."""
    uses, changed = _uses(steps), {op: _names_of(steps, op) for op in ("unlink", "rename", "link", "mmap")}
    renamed = changed["rename"] | changed["link"]
    chosen = set(uses) if wanted is None else set(uses) & set(wanted)
    parts = _split(steps, {name: uses[name] for name in chosen}, split)
    files = []
    for name in sorted(chosen, key=lambda number: names[number]):
        found = tuple(uses[name])
        if any(use is not None and use.direction for use in found):
            edges = tuple(_edges(name, found, parts))
            role = _role(found, edges, name in renamed)
            files.append(FileFlow(name, names[name], shown(names[name], cwd), found, edges, role, name in changed["unlink"]))
    rows = [_row(pattern, [files[i] for i in pattern.members]) for pattern in _patterns(files)]
    moved = {file.file for file in files}
    return Flow(
        tuple(step.name for step in steps),
        tuple(step.tasks for step in steps),
        tuple(sorted(rows, key=lambda row: (-row.bytes, row.pattern.text))),
        tuple(sorted(names[name] for name in renamed & chosen)),
        tuple(sorted({names[name] for name in changed["mmap"] & chosen} - moved)),
    )


def _patterns(files: Sequence[FileFlow]) -> list[Pattern]:
    """Files are alike when each step moves their bytes in the same direction, and they have the same role."""
    kinds = [(file.role, tuple("" if use is None else use.direction for use in file.uses)) for file in files]
    return find_patterns([file.text for file in files], kinds)


def _row(pattern: Pattern, files: list[FileFlow]) -> Row:
    return Row(pattern, tuple(files), tuple(_added([use for use in uses if use is not None]) for uses in zip(*(f.uses for f in files))))


def _added(uses: list[Use]) -> Use | None:
    if len(uses) < 2:
        return uses[0] if uses else None
    made = Use()
    for use in uses:
        for into, what in ((made.read, use.read), (made.written, use.written)):
            for task, count in what.items():
                into[task] = into.get(task, 0) + count
        made.read_ns += use.read_ns
        made.write_ns += use.write_ns
        made.other_ns += use.other_ns
    return made


def _uses(steps: Sequence[FlowStep]) -> dict[int, list[Use | None]]:
    """By name: its use in each step."""
    found: dict[int, list[Use | None]] = {}
    for index, step in enumerate(steps):
        for name, task, kind, count, ns, began, ended in _sums(step.columns):
            uses = found.setdefault(name, [None] * len(steps))
            use = uses[index] = uses[index] or Use()
            if kind == _READ:
                use.read_ns += ns
                if count:
                    use.read[task], use.reads_lasted[task] = count, (began, ended)
            elif kind == _WRITE:
                use.write_ns += ns
                if count:
                    use.written[task] = count
                    use.writes_began = began if use.writes_began is None else min(began, use.writes_began)
            else:
                use.other_ns += ns
    return found


def _sums(columns: Columns) -> Iterator[tuple[int, int, int, int, int, int, int]]:
    """Name, task, kind of operation; bytes moved, time that lies in no other call's, from when until when bytes moved."""
    table = columns.where(columns.name != NO_NAME)
    if not len(table):
        return
    kind = np.where(table.by_code("R"), _READ, np.where(table.by_code("W"), _WRITE, _OTHER))
    order = np.lexsort((kind, table.rank, table.name))
    table, kind = table.where(order), kind[order]
    begins = starts(table.name, table.rank, kind)
    began = np.where(table.moved > 0, table.first_ns, _NEVER)
    ended = np.where(table.moved > 0, table.last_ns, -_NEVER)
    sums = [np.add.reduceat(column, begins) for column in (table.moved, table.own_ns)]
    sums += [np.minimum.reduceat(began, begins), np.maximum.reduceat(ended, begins)]
    keys = (table.name[begins], table.rank[begins], kind[begins])
    yield from zip(*(column.tolist() for column in (*keys, *sums)))


def _names_of(steps: Sequence[FlowStep], op: str) -> set[int]:
    """Names on which an operation went well in any step."""
    found: set[int] = set()
    for step in steps:
        table = step.columns
        found |= set(table.name[(table.op == op_named(op).value) & (table.calls > table.errors)].tolist())
    return found - {NO_NAME}


def _writings(uses: Sequence[Use | None]) -> list[tuple[int, int, tuple[int, ...]]]:
    """When each step's writing of a file began, the step, its tasks; in this order."""
    found = ((use.writes_began, step, use.written) for step, use in enumerate(uses) if use is not None and use.writes_began is not None)
    return sorted((began, step, tuple(sorted(tasks))) for began, step, tasks in found)


def _split(steps: Sequence[FlowStep], uses: dict[int, list[Use | None]], split: Split | None) -> list[dict[tuple[int, int], list[int]]]:
    """For each step: what its tasks read before, between and after the writings of files that are written while they read."""
    cuts: list[dict[int, list[int]]] = [{} for _ in steps]
    for name, every in uses.items() if split is not None else ():
        instants = [began for began, _, _ in _writings(every)]
        for step, use in enumerate(every):
            spans = use.reads_lasted.values() if use is not None else ()
            if any(began <= instant < ended for began, ended in spans for instant in instants):
                cuts[step][name] = instants
    return [split(step, found) if split is not None and found else {} for step, found in enumerate(cuts)]


def _edges(name: int, uses: Sequence[Use | None], parts: list[dict[tuple[int, int], list[int]]]) -> Iterator[Edge]:
    writings = _writings(uses)
    for step, use in enumerate(uses):
        for task in sorted(use.read) if use is not None else ():
            began = use.reads_lasted[task][0]
            first = sum(one[0] < began for one in writings)
            counts = list(parts[step].get((name, task), ())) or [0] * (len(writings) + 1)
            counts[first] += use.read[task] - sum(counts)  # all of it where no records tell
            for before, count in enumerate(counts):
                if count:
                    _, came, writers = writings[before - 1] if before else (0, None, ())
                    yield Edge(came, writers, step, task, count)


def _role(uses: Sequence[Use | None], edges: Sequence[Edge], is_renamed: bool) -> str:
    """input: never written. output: never read. carried: made in the run, and what was written last is read by a later step.
    scratch: made and read within one step alone. updated: any other. renamed: an output whose name was changed."""
    writings = [(use.writes_began, step) for step, use in enumerate(uses) if use is not None and use.written]
    if not writings:
        return INPUT
    if not edges:
        return RENAMED if is_renamed else OUTPUT
    if any(edge.from_step is None for edge in edges):
        return UPDATED
    last = max(writings)[1]
    if any(edge.from_step == last and edge.to_step != last for edge in edges):
        return CARRIED
    return SCRATCH if len(writings) == 1 else UPDATED
