# SPDX-License-Identifier: Apache-2.0
"""The rows of a step added up as its trace files are scanned, so that memory follows files, ranks
and operations, and not their product.

A row of the reader is one process, file, operation, layer and flags. Here the ranks of a file are
one row, but for those that tables choose by themselves (rank 0, or the one that is asked for), and
the files of a process are one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Protocol

import numpy as np

from weir.analysis.columns import Columns, distinct, grouped, has_class, merged
from weir.analysis.names import NO_NAME
from weir.trace import Process
from weir.trace._abi import BINS
from weir.trace.ops import EVENTS

FOLDED_AT_ONCE = 1 << 18  # rows that wait to be added up
OTHERS = 2**31 - 1  # stands for the numbers of ranks that are added up
HISTOGRAM = np.dtype(
    [("member", "<i4"), ("op", "u1"), ("layer", "u1"), ("flags", "u1"), ("is_file", "u1"),
     ("by_size", "<i8", (BINS,)), ("by_duration", "<i8", (BINS,))]
)  # fmt: skip
_BY_FILE = ("name", "member", "op", "layer", "flags", "is_file")
_BY_MEMBER = ("member", "op", "layer", "flags", "is_file")
_OF_HISTOGRAM = ("member", "op", "layer", "flags", "is_file")


class _Member(Protocol):
    """What is read of weir.analysis.step.Member."""

    file: int
    process: Process
    rank: int
    is_launcher: bool
    number: int


@dataclass(frozen=True)
class Classes:
    """Members that tables never tell apart but one by one: of_member: the first member of the class
    of each; rank: the number of each member's rank, OTHERS for those that are added up."""

    of_member: np.ndarray
    rank: np.ndarray


def classes_of(members: Sequence[_Member], chosen: int | None = None) -> Classes:
    """chosen: a rank that a report is about, as rank 0 is always."""
    first: dict[tuple, int] = {}
    of_member = np.zeros(len(members), np.int32)
    rank = np.zeros(len(members), np.int32)
    for at, one in enumerate(members):
        is_apart = one.rank in (0, chosen) or one.number < 0
        number = one.number if is_apart else OTHERS
        key = (number, one.rank if is_apart else OTHERS, one.is_launcher, one.process.ranks > 1)
        of_member[at], rank[at] = first.setdefault(key, at), number
    return Classes(of_member, rank)


@dataclass(frozen=True)
class Sums:
    """by_file: of the ranks of a class, whose first member stands for all; by_member: without file
    names. layered: rows of event layers and notes, of each process and file. files_of: by number of
    a rank, names that it opened, read or wrote. histograms: of classes (HISTOGRAM). counts: rows of
    I/O of each class, by the member that stands for it: on others than files, and on files. rows:
    of each trace file. has_lost_names: whether rows have names that the trace does not have."""

    by_file: Columns
    by_member: Columns
    layered: Columns
    files_of: dict[int, int]
    histograms: np.ndarray
    counts: dict[int, tuple[int, int]]
    rows: tuple[int, ...]
    has_lost_names: bool


@dataclass(frozen=True)
class Part:
    """What a trace file adds to the sums of its step. used: numbers of ranks, and of names that
    they opened, read or wrote, in one number each; counts: as in Sums."""

    rows: int
    by_file: Columns
    by_member: Columns
    layered: Columns
    used: np.ndarray
    histograms: np.ndarray
    counts: dict[int, np.ndarray]


class Summing:
    """The rows of a step's trace files, one file after the other."""

    def __init__(self, members: Sequence[_Member], classes: Classes):
        self._classes = classes
        self._numbers = np.array([one.number for one in members], np.int32)
        self._is_spread = spread_numbers(members)
        self._by_file = Folding(_BY_FILE)
        self._by_member: list[Columns] = []
        self._layered: list[Columns] = []
        self._used = [np.zeros(0, np.int64)]  # of ranks with members in many files
        self._files_of: dict[int, int] = {}
        self._histograms = [np.zeros(0, HISTOGRAM)]
        self._counts: dict[int, np.ndarray] = {}
        self._rows: list[int] = []

    def part(self, columns: Columns, histograms: np.ndarray, first: int) -> Part:
        """Of all rows of one trace file, and its histograms. first: its first member. Threads may
        call it at once."""
        rows, is_layered = len(columns), columns.layer >= EVENTS
        layered = Columns.empty()
        if is_layered.any():
            layered, columns = columns.where(is_layered), columns.where(~is_layered)
        nameless = np.full(0, NO_NAME, np.int32)
        members = self._classes.of_member
        by_file = merged(
            replace(columns, member=members[columns.member],
                rank=self._classes.rank[columns.member]),
            *_BY_FILE)
        made = np.zeros(len(histograms), HISTOGRAM)
        for key in HISTOGRAM.names:
            made[key] = histograms[key] if key != "member" else members[
                histograms["process"].astype(np.int64) + first]
        by_member = replace(merged(columns, *_BY_MEMBER), name=nameless)
        return Part(rows, by_file, by_member, layered, self._used_in(columns), _folded(made),
            self._counts_of(columns))

    def add(self, part: Part) -> None:
        """In the order of the trace files."""
        self._rows.append(part.rows)
        self._layered.append(part.layered)
        self._by_member.append(part.by_member)
        self._by_file.add(part.by_file)
        self._add_files(part.used)
        self._histograms = [_folded(np.concatenate([*self._histograms, part.histograms]))]
        for member, counts in part.counts.items():
            self._counts[member] = self._counts.get(member, 0) + counts

    def _counts_of(self, columns: Columns) -> dict[int, np.ndarray]:
        is_io = columns.by_code("RWOCM")
        of, is_file = self._classes.of_member[columns.member[is_io]], columns.is_file[is_io]
        return {member: np.bincount(is_file[of == member], minlength=2)
            for member in distinct(of).tolist()}

    def _used_in(self, columns: Columns) -> np.ndarray:
        is_used = columns.is_file & has_class("ORW")[columns.op] & (columns.name != NO_NAME)
        numbers = self._numbers[columns.member[is_used]].astype(np.int64)
        return distinct(numbers << 32 | columns.name[is_used])

    def _add_files(self, used: np.ndarray) -> None:
        numbers = used >> 32
        if len(self._is_spread):
            is_spread = np.isin(numbers, self._is_spread)
            self._used.append(used[is_spread])
            numbers = numbers[~is_spread]
        its, count = np.unique(numbers, return_counts=True)
        self._files_of |= dict(zip(its.tolist(), count.tolist()))

    def sums(self, has_lost_names: bool) -> Sums:
        spread, count = np.unique(np.unique(np.concatenate(self._used)) >> 32, return_counts=True)
        members = [replace(one, name=np.full(len(one.member), NO_NAME, np.int32))
            for one in self._by_member]
        return Sums(
            self._by_file.folded(), Columns.joined(members), Columns.joined(self._layered),
            self._files_of | dict(zip(spread.tolist(), count.tolist())), self._histograms[0],
            {member: tuple(map(int, one)) for member, one in self._counts.items()},
            tuple(self._rows), has_lost_names,
        )  # fmt: skip


class Folding:
    """Parts of columns, added up over everything but the keys as they come."""

    def __init__(self, keys: tuple[str, ...]):
        self._keys, self._parts = keys, [Columns.empty()]
        self._waiting = self._rows = 0

    def add(self, part: Columns) -> None:
        self._parts.append(part)
        self._waiting += len(part)
        if self._waiting > max(FOLDED_AT_ONCE, self._rows):
            self.folded()

    def folded(self) -> Columns:
        if self._waiting:
            self._parts = [merged(Columns.joined(self._parts), *self._keys)]
            self._waiting, self._rows = 0, len(self._parts[0])
        return Columns.joined(self._parts)


def spread_numbers(members: Sequence[_Member]) -> np.ndarray:
    """Numbers of ranks that have members in several files."""
    if not members:
        return np.zeros(0, np.int64)
    pairs = np.unique([(one.number, one.file) for one in members], axis=0)
    numbers, count = np.unique(pairs[:, 0], return_counts=True)
    return numbers[count > 1]


def _folded(table: np.ndarray) -> np.ndarray:
    """Histograms of the same calls added up."""
    if not len(table):
        return table
    order, begins = grouped(*(table[key] for key in _OF_HISTOGRAM))
    made = table[order[begins]]
    for key in ("by_size", "by_duration"):
        made[key] = np.add.reduceat(table[key][order], begins, axis=0)
    return made


def bytes_of(columns: Columns) -> int:
    """Of the memory that columns take."""
    return sum(getattr(columns, field.name).nbytes for field in fields(columns))
