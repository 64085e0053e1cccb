# SPDX-License-Identifier: Apache-2.0
"""Data flow between steps: who read and wrote which file in which step, where each read's bytes
came from, what is only carried along.

The transfer matrix is that of the ECMWF reference (DESIGN section 5). Everything comes from the
columns that the other tables are computed from: bytes and seconds of a file are those of the table
of files, which lists it under its last name. A read's bytes are those of the step whose writing of
the file began last before it; whether it read just those bytes of the file only offsets could tell.
Where a rank's reading begins before a writing and ends after it, records decide if there are any,
and else where it began.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from weir.analysis.columns import Columns, starts
from weir.analysis.names import NO_NAME, NameTable, shown
from weir.analysis.ranks import RankNames
from weir.analysis.patterns import Pattern, find_patterns
from weir.report.files.naming import Files, Naming, files_behind
from weir.trace.ops import op_named

INPUT, OUTPUT, CARRIED, SCRATCH, UPDATED, RENAMED = ROLES = ("input", "output", "carried",
    "scratch", "updated", "renamed")
_READ, _WRITE, _OTHER = range(3)
_CLASSES = ("R", "W", "OCM")  # of the kinds
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class FlowStep:
    """One step to look at. ranks: all ranks of the step, whether columns has I/O of theirs or not;
    columns: I/O on files; namings: names that files were given, and lost, in it."""

    name: str
    ranks: frozenset[int]
    columns: Columns
    namings: tuple[Naming, ...] = ()


@dataclass
class Use:
    """What one step did with one file, or with all files of a row. read and written: bytes by rank
    (-1: no rank), none of them 0."""

    read: dict[int, int] = field(default_factory=dict)
    written: dict[int, int] = field(default_factory=dict)
    read_ns: int = 0
    write_ns: int = 0
    other_ns: int = 0
    # by rank: from the first call to the end of the last one
    reads_lasted: dict[int, tuple[int, int]] = field(default_factory=dict)
    writes_began: int | None = None
    writes_ended: int = 0

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


class Moved(NamedTuple):
    """What was done with a file in a stretch of time: bytes moved, time that lies in no other
    call's, from when until when bytes moved."""

    bytes: int
    ns: int
    began: int
    ended: int


class Edge(NamedTuple):
    """Bytes of one file that a rank of to_step read. from_step: index of the step that wrote them,
    None: they were there before."""

    from_step: int | None
    writers: tuple[int, ...]
    to_step: int
    reader: int
    bytes: int


@dataclass(frozen=True)
class FileFlow:
    """One file whose bytes moved, or several that had one name at last. number: of the name; names:
    all under which it was written and read. uses: one entry for each step. removed: the run left no
    file of that name."""

    number: int
    file: str
    names: tuple[str, ...]
    text: str
    uses: tuple[Use | None, ...]
    edges: tuple[Edge, ...]
    role: str
    removed: bool

    @property
    def has_other_names(self) -> bool:
        return any(name != self.file for name in self.names)


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
            Passage(None if came < 0 else came, to, frozenset().union(*writers.values()),
                frozenset(readers), len(files), count)
            for (to, came), (writers, readers, files, count) in sorted(found.items())
        ]


@dataclass(frozen=True)
class Flow:
    """rows: most bytes first. file_of: names of files that are listed under another name. renamed:
    written or read under names that another, unknown name took over; mapped: moved by mmap, unseen.
    """

    steps: tuple[str, ...]
    ranks: tuple[frozenset[int], ...]
    names: RankNames
    rows: tuple[Row, ...]
    file_of: dict[int, int]
    renamed: tuple[str, ...]
    mapped: tuple[str, ...]

    @property
    def files(self) -> int:
        return sum(len(row.files) for row in self.rows)

    def of(self, role: str) -> list[Row]:
        return [row for row in self.rows if row.role == role]


def who(members: Iterable[int], everyone: frozenset[int], names: RankNames) -> str:
    """The reference's word for a set of ranks of a step: 0, sev, all; one other rank by its label;
    of processes that are none: the only program, or other."""
    found = set(members)
    ranks = {rank for rank in found if rank >= 0}
    others = found - ranks
    if not ranks:
        word = ""
    elif len(ranks) == 1:
        word = names[min(ranks)].label
    else:
        word = "all" if ranks >= {rank for rank in everyone if rank >= 0} else "sev"
    other = names[min(others)].label if len(others) == 1 else "other" if others else ""
    return "+".join(filter(None, (word, other)))


# For a step, timestamps by name, and classes of operations: what each (name, rank) did before the
# first timestamp, between it and the next one, ..., after the last.
Split = Callable[[int, dict[int, list[int]], str], dict[tuple[int, int], list[Moved]]]


def flow(
    steps: Sequence[FlowStep], names: NameTable, cwd: str | None = None,
    wanted: Iterable[int] | None = None, split: Split | None = None
) -> Flow:
    """The flow of all files whose bytes moved; wanted: of these names alone. cwd: names below it
    are shown without it. split: asked for files that a step reads before and after they are
    written, or uses before and after their name is given to another one."""
    behind = files_behind([one for step in steps for one in step.namings],
        *[[step.columns for step in steps]] * 2, names)
    changed = {op: _names_of(steps, op) for op in ("rename", "link", "mmap")}
    gone = _removed(steps)
    uses, known = _uses(steps, names, behind, split)
    followed = {names.number(one.old) for step in steps for one in step.namings
        if one.kind != "unlink"}
    renamed = (changed["rename"] | changed["link"]) - followed
    chosen = None if wanted is None else set(wanted)
    by_name: dict[int, list[_Known]] = {}
    for one in known.values():
        if chosen is None or chosen & set(one.names):
            by_name.setdefault(one.shown_as(names, behind), []).append(one)
    parts = _split(steps, uses, [one for every in by_name.values() for one in every], names, behind,
        split)
    files = []
    for name in sorted(by_name, key=lambda number: names[number]):
        made = [
            _file(uses[one.file], parts, one.file, name in renamed, name in gone)
            for one in by_name[name]
        ]
        found = tuple(_added([use for use in every if use is not None])
            for every in zip(*(uses[one.file] for one in by_name[name])))
        if any(use is not None and use.direction for use in found):
            role = made[0][1] if len({role for _, role in made}) == 1 else UPDATED
            also = tuple(sorted({names[number] for one in by_name[name] for number in one.moved}))
            edges = tuple(edge for every, _ in made for edge in every)
            files.append(FileFlow(name, names[name], also, shown(names[name], cwd), found, edges,
                role, name in gone))
    rows = [_row(pattern, [files[i] for i in pattern.members]) for pattern in _patterns(files)]
    moved = {name for file in files for name in file.names}
    every_name = {number for ones in by_name.values() for one in ones for number in one.names}
    return Flow(
        tuple(step.name for step in steps),
        tuple(step.ranks for step in steps),
        names.ranks,
        tuple(sorted(rows, key=lambda row: (-row.bytes, row.pattern.text))),
        _file_of(by_name),
        tuple(sorted(names[name] for name in renamed & every_name)),
        tuple(sorted({names[name] for name in changed["mmap"] & every_name} - moved)),
    )


@dataclass
class _Known:
    """What is known of a file: all its names, those under which bytes moved, and under which
    (symbolic links followed) it was read last."""

    file: int
    names: set[int] = field(default_factory=set)
    moved: set[int] = field(default_factory=set)
    read: tuple[int, str] = (-NEVER, "")

    def shown_as(self, names: NameTable, behind: Files) -> int:
        """A name tells most of a file where it was read; of one that nobody read, the last one
        does."""
        return names.number(self.read[1] or behind.last_name(self.file))


def _file(
    uses: list[Use | None], parts: list[dict[tuple[int, int], list[int]]], file: int,
    is_renamed: bool, is_removed: bool,
) -> tuple[tuple[Edge, ...], str]:  # fmt: skip
    edges = tuple(_edges(file, uses, parts))
    return edges, _role(uses, edges, is_renamed, is_removed)


def _file_of(by_name: dict[int, list[_Known]]) -> dict[int, int]:
    """Names that stand for one file alone, and that one is listed under another name."""
    found: dict[int, set[int]] = {}
    for shown_as, every in by_name.items():
        for number in {number for one in every for number in one.names}:
            found.setdefault(number, set()).add(shown_as)
    return {number: min(files) for number, files in found.items() if len(files) == 1
        and number not in files}


def _patterns(files: Sequence[FileFlow]) -> list[Pattern]:
    """Files are alike when each step moves their bytes in the same direction, and they have the
    same role."""
    kinds = [(file.role, tuple("" if use is None else use.direction for use in file.uses))
        for file in files]
    return find_patterns([file.text for file in files], kinds)


def _row(pattern: Pattern, files: list[FileFlow]) -> Row:
    return Row(pattern, tuple(files), tuple(_added([use for use in uses if use is not None])
        for uses in zip(*(f.uses for f in files))))


def _added(uses: list[Use]) -> Use | None:
    if len(uses) < 2:
        return uses[0] if uses else None
    made = Use()
    for use in uses:
        for into, what in ((made.read, use.read), (made.written, use.written)):
            for rank, count in what.items():
                into[rank] = into.get(rank, 0) + count
        made.read_ns += use.read_ns
        made.write_ns += use.write_ns
        made.other_ns += use.other_ns
    return made


def _uses(
    steps: Sequence[FlowStep], names: NameTable, behind: Files, split: Split | None
) -> tuple[dict[int, list[Use | None]], dict[int, _Known]]:
    """By file: its use in each step, and its names."""
    found: dict[int, list[Use | None]] = {}
    known: dict[int, _Known] = {}
    for index, step in enumerate(steps):
        for name, rank, kind, file, real, did in _pieces(index, step, names, behind, split):
            uses = found.setdefault(file, [None] * len(steps))
            use = uses[index] = uses[index] or Use()
            _add(use, rank, kind, did)
            about = known.setdefault(file, _Known(file))
            about.names.add(name)
            if did.bytes and kind != _OTHER:
                about.moved.add(name)
            if did.bytes and kind == _READ:
                about.read = max(about.read, (did.ended, real))
    return found, known


def _add(use: Use, rank: int, kind: int, did: Moved) -> None:
    if kind == _OTHER:
        use.other_ns += did.ns
    elif kind == _READ:
        use.read_ns += did.ns
        if did.bytes:
            use.read[rank] = use.read.get(rank, 0) + did.bytes
            began, ended = use.reads_lasted.get(rank, (did.began, did.ended))
            use.reads_lasted[rank] = min(began, did.began), max(ended, did.ended)
    else:
        use.write_ns += did.ns
        if did.bytes:
            use.written[rank] = use.written.get(rank, 0) + did.bytes
            use.writes_ended = max(use.writes_ended, did.ended)
            use.writes_began = did.began if use.writes_began is None else min(did.began,
                use.writes_began)


def _pieces(
    index: int, step: FlowStep, names: NameTable, behind: Files, split: Split | None
) -> Iterator[tuple[int, int, int, int, str, Moved]]:
    """Name, rank, kind, file, its name without symbolic links, what was done. A line of the columns
    that lies before and after its name was given to another file is parted by the records, or
    counts where it began."""
    whole, parted = [], {kind: set() for kind in range(len(_CLASSES))}
    for name, rank, kind, did, first, last in _sums(step.columns):
        text = names[name]
        if behind.is_plain(text):
            yield name, rank, kind, name, text, did
            continue
        whole.append((name, rank, kind, did, first))
        if any(first <= at < last for at in behind.timestamps(text)):
            parted[kind].add(name)
    parts = {
        kind: split(index, {name: behind.timestamps(names[name]) for name in every},
            _CLASSES[kind]) if split is not None and every else {}
        for kind, every in parted.items()
    }
    for name, rank, kind, did, first in whole:
        pieces = parts[kind].get((name, rank), ()) if name in parted[kind] else ()
        since = [-NEVER, *(at + 1 for at in behind.timestamps(names[name]))]
        for at, one in zip(since, pieces):
            if one.bytes or one.ns:
                yield name, rank, kind, *behind.at(names[name], at), one
        rest = did._replace(bytes=did.bytes - sum(one.bytes for one in pieces),
            ns=did.ns - sum(one.ns for one in pieces))
        # all of it where no records tell; else what rounding left
        if rest.bytes or rest.ns or not pieces:
            yield name, rank, kind, *behind.at(names[name], first), rest


def _sums(columns: Columns) -> Iterator[tuple[int, int, int, Moved, int, int]]:
    """Name, rank, kind of operation; what was done; when the first call began and the last one
    ended."""
    table = columns.where(columns.name != NO_NAME)
    if not len(table):
        return
    kind = np.where(table.by_code("R"), _READ, np.where(table.by_code("W"), _WRITE, _OTHER))
    order = np.lexsort((kind, table.rank, table.name))
    table, kind = table.where(order), kind[order]
    begins = starts(table.name, table.rank, kind)
    began = np.where(table.moved > 0, table.first_ns, NEVER)
    ended = np.where(table.moved > 0, table.last_ns, -NEVER)
    sums = [np.add.reduceat(column, begins) for column in (table.moved, table.own_ns)]
    sums += [np.minimum.reduceat(began, begins), np.maximum.reduceat(ended, begins)]
    lasted = (np.minimum.reduceat(table.first_ns, begins),
        np.maximum.reduceat(table.last_ns, begins))
    keys = (table.name[begins], table.rank[begins], kind[begins])
    for name, rank, of, *did, first, last in zip(*(column.tolist()
            for column in (*keys, *sums, *lasted))):
        yield name, rank, of, Moved(*did), first, last


def _names_of(steps: Sequence[FlowStep], op: str) -> set[int]:
    """Names on which an operation went well in any step."""
    found: set[int] = set()
    for step in steps:
        table = step.columns
        found |= set(table.name[(table.op == op_named(op).value) & (table.calls > table.errors)]
            .tolist())
    return found - {NO_NAME}


def _removed(steps: Sequence[FlowStep]) -> set[int]:
    """Names that no file has after the run: unlinked after they were opened last."""
    unlinked: dict[int, int] = {}
    opened: dict[int, int] = {}
    unlink = op_named("unlink").value
    for step in steps:
        table = step.columns
        is_unlink = (table.op == unlink) & (table.calls > table.errors)
        for last, mask in ((unlinked, is_unlink), (opened, table.by_code("O"))):
            for name, ended in zip(table.name[mask].tolist(), table.last_ns[mask].tolist()):
                last[name] = max(last.get(name, 0), ended)
    return {name for name, ended in unlinked.items() if ended > opened.get(name, 0)} - {NO_NAME}


def _writings(uses: Sequence[Use | None]) -> list[tuple[int, int, tuple[int, ...]]]:
    """When each step's writing of a file began, the step, its ranks; in this order."""
    found = ((use.writes_began, step, use.written) for step, use in enumerate(uses)
        if use is not None and use.writes_began is not None)
    return sorted((began, step, tuple(sorted(ranks))) for began, step, ranks in found)


def _split(
    steps: Sequence[FlowStep], uses: dict[int, list[Use | None]], known: Iterable[_Known],
    names: NameTable, behind: Files, split: Split | None
) -> list[dict[tuple[int, int], list[int]]]:
    """For each step, by file and rank: what was read before, between and after the writings of
    files that are written while they are read."""
    cuts: list[dict[int, set[int]]] = [{} for _ in steps]
    writings = {}
    for one in known if split is not None else ():
        every = uses[one.file]
        writings[one.file] = timestamps = [began for began, _, _ in _writings(every)]
        for step, use in enumerate(every):
            spans = use.reads_lasted.values() if use is not None else ()
            if any(began <= timestamp < ended for began, ended in spans
                    for timestamp in timestamps):
                for name in one.names:
                    cuts[step].setdefault(name, set(behind.timestamps(names[name]))).update(
                        timestamps)
    parts: list[dict[tuple[int, int], list[int]]] = []
    for step, found in enumerate(cuts):
        at = {name: sorted(timestamps) for name, timestamps in found.items()}
        parts.append({})
        for (name, rank), did in (split(step, at, "R") if split is not None and at else {}).items():
            for since, one in zip([-NEVER, *(timestamp + 1 for timestamp in at[name])], did):
                file = name if behind.is_plain(names[name]) else behind.at(names[name], since)[0]
                if one.bytes and file in writings:
                    counts = parts[step].setdefault((file, rank), [0] * (len(writings[file]) + 1))
                    counts[sum(began < since for began in writings[file])] += one.bytes
    return parts


def _edges(file: int, uses: Sequence[Use | None],
        parts: list[dict[tuple[int, int], list[int]]]) -> Iterator[Edge]:
    writings = _writings(uses)
    for step, use in enumerate(uses):
        for rank in sorted(use.read) if use is not None else ():
            began = use.reads_lasted[rank][0]
            first = sum(one[0] < began for one in writings)
            counts = list(parts[step].get((file, rank), ())) or [0] * (len(writings) + 1)
            counts[first] += use.read[rank] - sum(counts)  # all of it where no records tell
            for before, count in enumerate(counts):
                if count:
                    _, came, writers = writings[before - 1] if before else (0, None, ())
                    yield Edge(came, writers, step, rank, count)


def _role(
    uses: Sequence[Use | None], edges: Sequence[Edge], is_renamed: bool, is_removed: bool
) -> str:
    """input: never written. output: never read, but while it is written. carried: made in the run,
    and what was written last is read by a later step. scratch: made and read within one step alone,
    by its writers after they have written it, or removed. updated: any other. renamed: an output
    whose name was changed."""
    writings = [(use.writes_began, step) for step, use in enumerate(uses) if use is not None
        and use.written]
    if not writings:
        return INPUT
    if not edges:
        return RENAMED if is_renamed else OUTPUT
    if any(edge.from_step is None for edge in edges):
        return UPDATED
    last = max(writings)[1]
    if any(edge.from_step == last and edge.to_step != last for edge in edges):
        return CARRIED
    if len(writings) > 1:
        return UPDATED
    [made] = [use for use in uses if use is not None and use.written]
    return OUTPUT if _is_read_meanwhile(made) and not is_removed else SCRATCH


def _is_read_meanwhile(use: Use) -> bool:
    """Whether a file is read while it is written: by its writers, which write on after their last
    read (libraries that fill blocks read these before, however often, and appending needs the last
    block); or by others, who look at a file that grows."""
    if use.read.keys() <= use.written.keys():
        return max(last for _, last in use.reads_lasted.values()) < use.writes_ended
    others = [span for rank, span in use.reads_lasted.items() if rank not in use.written]
    return min(first for first, _ in others) < use.writes_ended
