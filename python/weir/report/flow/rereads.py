# SPDX-License-Identifier: Apache-2.0
"""Files that are read more often than needed: by all ranks of a step, or more than once by the same
rank.

How many distinct bytes were read is the length of a union of intervals in the file, from the
records of reads whose offset is known (not those of stdio). native/reader/rereads.h passes over the
records; whose reads belong together, and what that means, is decided here.
"""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from weir.analysis.columns import Columns, class_codes, merged, starts
from weir.analysis.names import NameTable
from weir.analysis.remote import pass_over_records
from weir.analysis.step import StepData, name_numbers
from weir.report.flow.compute import NEVER, FileFlow, Flow, FlowStep, Moved, Row
from weir.trace._abi import EXTENT, READ_OF, USE, Clock, Reads, reads_functions
from weir.trace.file import threads_for
from weir.trace.ops import EVENTS

STRETCHES = 1 << 22  # of 24 bytes, and as much again while they are sorted
_LEAST = 1 << 31  # no number of a rank is as far below 0


class Extent(NamedTuple):
    """Bytes that were read at known offsets, and how many different ones they were."""

    known: int = 0
    distinct: int = 0


@dataclass(frozen=True)
class Extents:
    """Of one step: by name and rank, and by name over all ranks together."""

    by_rank: dict[tuple[int, int], Extent]
    by_name: dict[int, Extent]


@dataclass(frozen=True)
class Reread:
    """Files of one row that ranks of one step read more than once, or that all its ranks read.
    distinct: bytes that would have done, None where offsets are unknown; times: how often a rank
    opened a file, at most."""

    step: int
    row: Row
    files: tuple[str, ...]
    ranks: frozenset[int]
    bytes: int
    distinct: int | None
    times: int

    @property
    def extra(self) -> int:
        """Bytes read again."""
        return 0 if self.distinct is None else self.bytes - self.distinct


@dataclass(frozen=True)
class _Groups:
    """Whose I/O is looked at: a group for each name and rank, sorted by both; of_files: for each
    trace file which of its files belong to which."""

    keys: list[tuple[int, int]]
    of_files: list[np.ndarray]

    @property
    def names(self) -> tuple[list[int], np.ndarray]:
        """The names, rising, and for each group which one."""
        names, at = np.unique(np.array([name for name, _ in self.keys], np.int64),
            return_inverse=True)
        return names.tolist(), at.astype(np.uint32)


def _groups(
    data: StepData, members: np.ndarray, names: NameTable, classes: str, *,
    wanted: Iterable[int] | None = None, file_of: Mapping[int, int] | None = None
) -> _Groups:
    """Of the I/O of these classes by the chosen members. wanted: on these names alone; file_of:
    names that stand for the file of another one."""
    ranks = np.array([member.number for member in data.members], np.int64)
    found, chosen = [], None if wanted is None else np.fromiter(wanted, np.int64)
    for index, file in enumerate(data.files):
        rows, first = file.rows_of(0, len(file.processes)), data.first_member(index)
        is_wanted = np.isin(class_codes()[rows["op"]],
            np.frombuffer(classes.encode(), np.uint8)) & (rows["layer"] < EVENTS)
        rows = rows[is_wanted & members[rows["process"] + first]][["process", "file"]]
        # they are sorted by both
        rows = rows[starts(rows["process"], rows["file"])] if len(rows) else rows
        numbers = name_numbers(file, rows, names, data.name_numbers[index]).astype(np.int64)
        kept = numbers >= 0 if chosen is None else (numbers >= 0) & np.isin(numbers, chosen)
        if file_of:
            numbers = np.array([file_of.get(number, number) for number in numbers.tolist()],
                np.int64)
        keys = numbers << 32 | (ranks[rows["process"] + first] + _LEAST)
        found.append((rows[kept], keys[kept]))
    keys, at = np.unique(np.concatenate([np.empty(0, np.int64), *(keys for _, keys in found)]),
        return_inverse=True)
    of_files, done = [], 0
    for rows, of in found:
        made = np.empty(len(rows), READ_OF)
        made["process"], made["file"], made["group"] = rows["process"], rows["file"], at[
            done : done + len(of)]
        of_files.append(made)
        done += len(of)
    return _Groups([(key >> 32, (key & 0xFFFFFFFF) - _LEAST) for key in keys.tolist()], of_files)


def _native(data: StepData, groups: _Groups) -> Reads:
    """The records of these groups for the library. What it points into lives as long as groups and
    data do."""
    count = len(data.files)
    return Reads(
        (c.c_void_p * count)(*(file.handle for file in data.files)),
        (Clock * count)(*(line.native() for line in data.lines)),
        (c.c_void_p * count)(*(one.ctypes.data for one in groups.of_files)),
        (c.c_uint64 * count)(*map(len, groups.of_files)),
        count,
        threads_for(sum(file.header.file_bytes for file in data.files)),
    )


@pass_over_records
def extents(data: StepData, members: np.ndarray, names: NameTable,
        file_of: Mapping[int, int] | None = None, *, room: int = STRETCHES) -> Extents:
    """What the chosen members of a step (a boolean for each) read, from the records of their reads.

    file_of: names that stand for the file of another one. room: how many disjoint stretches of
    files may be in memory at once. cost: a pass over all records; where there are more stretches,
    one for each part of the files that fits. Raises MemoryError.
    """
    groups = _groups(data, members, names, "R", file_of=file_of)
    numbers, name_of = groups.names
    of_groups, of_names = np.zeros(len(groups.keys), EXTENT), np.zeros(len(numbers), np.uint64)
    _, function = reads_functions()
    if function(c.byref(_native(data, groups)), name_of.ctypes.data, len(name_of), room,
            of_groups.ctypes.data, of_names.ctypes.data):
        raise MemoryError("not enough memory, or no threads, to tell what was read more than once")
    known = np.zeros(len(numbers), np.uint64)
    np.add.at(known, name_of, of_groups["known_bytes"])
    return Extents(
        {key: Extent(*one) for key, one in zip(groups.keys, of_groups.tolist()) if one[0]},
        {name: Extent(*one) for name, *one in zip(numbers, known.tolist(), of_names.tolist())
            if one[0]},
    )


@pass_over_records
def uses_between(
    data: StepData, members: np.ndarray, names: NameTable, timestamps: dict[int, list[int]],
    classes: str = "R"
) -> dict[tuple[int, int], list[Moved]]:
    """By name and rank: what the chosen members did before the first of the name's timestamps (ns
    since 1970, rising), between it and the next, and so on. classes: R, W, or OCM for anything
    else. cost: one pass over all records. Raises MemoryError."""
    groups = _groups(data, members, names, classes, wanted=timestamps)
    counts = [len(timestamps[name]) for name, _ in groups.keys]
    first_cut = np.cumsum([0, *counts]).astype(np.uint64)
    cuts = np.array([at for name, _ in groups.keys for at in timestamps[name]], np.int64)
    uses = np.zeros(len(cuts) + len(counts), USE)
    uses["first_ns"], uses["last_ns"] = NEVER, -NEVER
    function, _ = reads_functions()
    op_class = classes[-1].encode()
    if function(c.byref(_native(data, groups)), op_class, first_cut.ctypes.data, len(counts),
            cuts.ctypes.data, uses.ctypes.data):
        raise MemoryError("not enough memory, or no threads, to tell what was done when")
    parts = np.split(uses, np.cumsum([count + 1 for count in counts])[:-1]) if counts else []
    return {key: [Moved(*one) for one in part.tolist()] for key, part in zip(groups.keys, parts)
        if part["bytes"].any() or part["own_ns"].any()}


def read_by_all(flow: Flow, found: Sequence[Extents | None]) -> list[Reread]:
    """Files that every rank of a step read, where it has several ranks; what was read again most
    first."""
    made = []
    for row, step, files in _read(flow):
        everyone = {rank for rank in flow.ranks[step] if rank >= 0}
        shared = [(file, set(file.uses[step].read)) for file in files if len(everyone) > 1
            and everyone <= set(file.uses[step].read)]
        if shared:
            extents = found[step]
            parts = [_Part(file, ranks, file.uses[step].bytes_read,
                _distinct_of(file, step, extents), 0) for file, ranks in shared]
            made.append(_reread(step, row, parts))
    return sorted(made, key=_order)


def read_again(flow: Flow, steps: Sequence[FlowStep],
        found: Sequence[Extents | None]) -> list[Reread]:
    """Files of which one rank read bytes more than once within a step; where offsets are unknown,
    files that a rank opened more than once and only read."""
    made = []
    opened = [_opens(step.columns, flow.file_of) for step in steps]
    for row, step, files in _read(flow):
        known, unknown = [], []
        for file in files:
            use, extents = file.uses[step], found[step]
            for rank, count in use.read.items():
                extent = Extent() if extents is None else extents.by_rank.get((file.number, rank),
                    Extent())
                times = opened[step].get((file.number, rank), 0)
                if extent.known == count:
                    known += [_Part(file, {rank}, count, extent.distinct,
                        times)] if extent.distinct < count else []
                elif times > 1 and not use.written:
                    unknown.append(_Part(file, {rank}, count, None, times))
        made += [_reread(step, row, parts) for parts in (known, unknown) if parts]
    return sorted(made, key=_order)


class _Part(NamedTuple):
    file: FileFlow
    ranks: set[int]
    bytes: int
    distinct: int | None
    times: int


def _read(flow: Flow) -> Iterator[tuple[Row, int, list[FileFlow]]]:
    """Each row and step with the files that the step read."""
    for row in flow.rows:
        for step in range(len(flow.steps)):
            files = [file for file in row.files if file.uses[step] is not None
                and file.uses[step].read]
            if files:
                yield row, step, files


def _distinct_of(file: FileFlow, step: int, extents: Extents | None) -> int | None:
    """Distinct bytes that all ranks of a step read together; None unless all offsets are known."""
    extent = Extent() if extents is None else extents.by_name.get(file.number, Extent())
    return extent.distinct if extent.known == file.uses[step].bytes_read else None


def _reread(step: int, row: Row, parts: Sequence[_Part]) -> Reread:
    distinct = [part.distinct for part in parts]
    return Reread(
        step,
        row,
        tuple(dict.fromkeys(part.file.file for part in parts)),
        frozenset().union(*(part.ranks for part in parts)),
        sum(part.bytes for part in parts),
        None if None in distinct else sum(distinct),
        max(part.times for part in parts),
    )


def _opens(columns: Columns, file_of: Mapping[int, int]) -> dict[tuple[int, int], int]:
    """Openings that went well and that the program made itself, by file and rank."""
    opens = merged(columns.where(columns.by_code("O") & ~columns.is_below), "name", "rank")
    found: dict[tuple[int, int], int] = {}
    for name, rank, calls, errors in zip(*(getattr(opens, key).tolist()
            for key in ("name", "rank", "calls", "errors"))):
        key = file_of.get(name, name), rank
        found[key] = found.get(key, 0) + calls - errors
    return found


def _order(one: Reread) -> tuple:
    return -one.extra, one.distinct is None, -one.bytes, one.step, one.row.pattern.text
