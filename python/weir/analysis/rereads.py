# SPDX-License-Identifier: Apache-2.0
"""Files that are read more often than needed: by all tasks of a step, or more than once by the same task.

How many distinct bytes were read is the length of a union of intervals in the file, from the records of reads whose offset is known (not
those of stdio). The union is taken in batches and keeps disjoint intervals alone: memory depends on how scattered reads are,
not on how many there were.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from weir.analysis.columns import Columns, class_codes, merged, starts
from weir.analysis.flow import FileFlow, Flow, FlowStep, Row
from weir.analysis.names import NameTable
from weir.analysis.step import StepData, name_numbers
from weir.trace.file import TraceFile
from weir.trace.ops import ERROR, POSIX, STDIO

BATCH_READS = 1 << 19
_UNKNOWN_OFFSET = np.uint64(2**48 - 1)


class Extent(NamedTuple):
    """Bytes that were read at known offsets, and how many different ones they were."""

    known: int = 0
    distinct: int = 0


@dataclass(frozen=True)
class Extents:
    """Of one step: by name and task, and by name over all tasks together."""

    by_task: dict[tuple[int, int], Extent]
    by_name: dict[int, Extent]


@dataclass(frozen=True)
class Reread:
    """Files of one row that tasks of one step read more than once, or that all its tasks read. distinct: bytes that would have done, None where
    offsets are unknown; times: how often a task opened a file, at most."""

    step: int
    row: Row
    files: tuple[str, ...]
    tasks: frozenset[int]
    bytes: int
    distinct: int | None
    times: int

    @property
    def extra(self) -> int:
        """Bytes read again."""
        return 0 if self.distinct is None else self.bytes - self.distinct


class _Intervals:
    """Disjoint intervals of bytes for each key."""

    def __init__(self) -> None:
        self.known: dict[int, int] = {}
        self.merged = [np.empty(0, np.int64)] * 3
        self.waiting: list[list[np.ndarray]] = []
        self.count = 0

    def add(self, keys: np.ndarray, begins: np.ndarray, sizes: np.ndarray) -> None:
        """Reads in the order in which they were made."""
        if not len(keys):
            return
        found, at = np.unique(keys, return_inverse=True)
        for key, total in zip(found.tolist(), _sum_by(at, sizes, len(found))):
            self.known[key] = self.known.get(key, 0) + total
        ends = begins + sizes
        is_new = np.ones(len(keys), bool)
        is_new[1:] = (keys[1:] != keys[:-1]) | (begins[1:] != ends[:-1])
        first = np.flatnonzero(is_new)  # reads that go on where the last one ended are one
        last = np.append(first[1:], len(keys)) - 1
        self.waiting.append([keys[first], begins[first], ends[last]])
        self.count += len(first)
        if self.count > max(BATCH_READS, 2 * len(self.merged[0])):
            self._merge()

    def lengths(self) -> dict[int, int]:
        """Bytes in the union, by key."""
        self._merge()
        keys, begins, ends = self.merged
        found, at = np.unique(keys, return_inverse=True)
        return dict(zip(found.tolist(), _sum_by(at, ends - begins, len(found))))

    def _merge(self) -> None:
        self.merged = list(union(*(np.concatenate(column) for column in zip(self.merged, *self.waiting))))
        self.waiting, self.count = [], 0


def union(keys: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same bytes as disjoint intervals, by key and begin. Intervals that touch are one."""
    if not len(keys):
        return keys, begins, ends
    order = np.lexsort((begins, keys))
    keys, begins, ends = keys[order], begins[order], ends[order]
    by_end = np.lexsort((ends, keys))
    place = np.empty(len(keys), np.int64)
    place[by_end] = np.arange(len(keys))
    reach = ends[by_end][np.maximum.accumulate(place)]  # the greatest end so far of the same key: keys rise
    is_new = np.ones(len(keys), bool)
    is_new[1:] = (keys[1:] != keys[:-1]) | (begins[1:] > reach[:-1])
    first = np.flatnonzero(is_new)
    last = np.append(first[1:], len(keys)) - 1
    return keys[first], begins[first], reach[last]


def _sum_by(at: np.ndarray, values: np.ndarray, count: int) -> list[int]:
    sums = np.zeros(count, np.int64)
    np.add.at(sums, at, values)
    return sums.tolist()


def extents(data: StepData, members: np.ndarray, names: NameTable) -> Extents:
    """What the chosen members of a step (a boolean for each) read, from the records of their reads. cost: one pass over all records."""
    by_task = _Intervals()
    for index in range(len(data.files)):
        for keys, records in _reads(data, index, members, names):
            offsets = records["offset_size"] & _UNKNOWN_OFFSET
            known = offsets != _UNKNOWN_OFFSET
            by_task.add(keys[known], offsets[known].astype(np.int64), _sizes(records)[known])
    distinct = by_task.lengths()
    by_name = _Intervals()
    keys, begins, ends = by_task.merged
    by_name.add(keys >> 32, begins, ends - begins)
    tasks = {_unpacked(key): Extent(by_task.known[key], count) for key, count in distinct.items()}
    known: dict[int, int] = {}
    for (name, _), extent in tasks.items():
        known[name] = known.get(name, 0) + extent.known
    return Extents(tasks, {name: Extent(known[name], count) for name, count in by_name.lengths().items()})


def _unpacked(key: int) -> tuple[int, int]:
    return key >> 32, (key & 0xFFFFFFFF) - 1


def bytes_between(data: StepData, members: np.ndarray, names: NameTable, instants: dict[int, list[int]]) -> dict[tuple[int, int], list[int]]:
    """By name and task: bytes that the chosen members read before the first of the name's instants (ns since 1970, rising), between it and
    the next, and so on. cost: one pass over all records."""
    sums: dict[tuple[int, int], list[int]] = {}
    wanted = np.array(sorted(instants), np.int64)
    for index in range(len(data.files)):
        for keys, records in _reads(data, index, members, names):
            chosen = np.flatnonzero(np.isin(keys >> 32, wanted))
            chosen = chosen[np.argsort(keys[chosen], kind="stable")]
            keys, records = keys[chosen], records[chosen]
            sizes, begun = _sizes(records), data.lines[index].instants(records["start"])
            limits = [*starts(keys).tolist(), len(keys)] if len(keys) else []
            for first, last in zip(limits, limits[1:]):
                at = instants[int(keys[first]) >> 32]
                parts = sums.setdefault(_unpacked(int(keys[first])), [0] * (len(at) + 1))
                found = _sum_by(np.searchsorted(at, begun[first:last], side="left"), sizes[first:last], len(parts))
                parts[:] = [one + more for one, more in zip(parts, found)]
    return sums


def _sizes(records: np.ndarray) -> np.ndarray:
    return ((records["offset_size"] >> np.uint64(48) << np.uint64(32)) | records["size_low"]).astype(np.int64)


def _reads(data: StepData, index: int, members: np.ndarray, names: NameTable) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Reads of one trace file that moved bytes of a name, in batches: name and task as one number, and the record."""
    file, first = data.files[index], data.first_member(index)
    ranks = np.array([member.rank for member in data.members], np.int64)
    for processes, records in _batches(file, members[first : first + len(file.processes)]):
        table = np.empty(len(records), [("process", "<u4"), ("file", "<u4")])
        table["process"], table["file"] = processes, records["file"]
        numbers = name_numbers(file, table, names, data.name_numbers[index]).astype(np.int64)
        kept = (numbers >= 0) & (_sizes(records) > 0)
        yield (numbers << 32 | (ranks[processes + first] + 1))[kept], records[kept]


def _batches(file: TraceFile, chosen: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Process and record of all reads that went well, chunk by chunk, many at a time."""
    chunks = file.event_chunks()
    kept: list[tuple[np.ndarray, np.ndarray]] = []
    count = 0
    for chunk in chunks[np.lexsort((chunks["sequence"], chunks["log"]))]:
        if not chosen[chunk["process"]]:
            continue
        records = file.records(chunk)
        is_read = (class_codes()[records["op"]] == ord("R")) & ((records["layer"] == POSIX) | (records["layer"] == STDIO))
        found = records[is_read & ((records["flags"] & ERROR) == 0)]
        kept.append((np.full(len(found), chunk["process"], np.int64), found))
        count += len(found)
        if count >= BATCH_READS:
            yield _joined(kept)
            kept, count = [], 0
    if kept:
        yield _joined(kept)


def _joined(kept: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    processes, records = zip(*kept)
    return np.concatenate(processes), np.concatenate(records)


def read_by_all(flow: Flow, found: Sequence[Extents | None]) -> list[Reread]:
    """Files that every task of a step read, where it has several tasks; what was read again most first."""
    made = []
    for row, step, files in _read(flow):
        everyone = {task for task in flow.tasks[step] if task >= 0}
        shared = [(file, set(file.uses[step].read)) for file in files if len(everyone) > 1 and everyone <= set(file.uses[step].read)]
        if shared:
            extents = found[step]
            parts = [_Part(file, tasks, file.uses[step].bytes_read, _distinct_of(file, step, extents), 0) for file, tasks in shared]
            made.append(_reread(step, row, parts))
    return sorted(made, key=_order)


def read_again(flow: Flow, steps: Sequence[FlowStep], found: Sequence[Extents | None]) -> list[Reread]:
    """Files of which one task read bytes more than once within a step; where offsets are unknown, files that a task opened more
    than once and only read."""
    made = []
    opened = [_opens(step.columns) for step in steps]
    for row, step, files in _read(flow):
        known, unknown = [], []
        for file in files:
            use, extents = file.uses[step], found[step]
            for task, count in use.read.items():
                extent = Extent() if extents is None else extents.by_task.get((file.number, task), Extent())
                times = opened[step].get((file.number, task), 0)
                if extent.known == count:
                    known += [_Part(file, {task}, count, extent.distinct, times)] if extent.distinct < count else []
                elif times > 1 and not use.written:
                    unknown.append(_Part(file, {task}, count, None, times))
        made += [_reread(step, row, parts) for parts in (known, unknown) if parts]
    return sorted(made, key=_order)


class _Part(NamedTuple):
    file: FileFlow
    tasks: set[int]
    bytes: int
    distinct: int | None
    times: int


def _read(flow: Flow) -> Iterator[tuple[Row, int, list[FileFlow]]]:
    """Each row and step with the files that the step read."""
    for row in flow.rows:
        for step in range(len(flow.steps)):
            files = [file for file in row.files if file.uses[step] is not None and file.uses[step].read]
            if files:
                yield row, step, files


def _distinct_of(file: FileFlow, step: int, extents: Extents | None) -> int | None:
    """Distinct bytes that all tasks of a step read together; None unless all offsets are known."""
    extent = Extent() if extents is None else extents.by_name.get(file.number, Extent())
    return extent.distinct if extent.known == file.uses[step].bytes_read else None


def _reread(step: int, row: Row, parts: Sequence[_Part]) -> Reread:
    distinct = [part.distinct for part in parts]
    return Reread(
        step,
        row,
        tuple(dict.fromkeys(part.file.file for part in parts)),
        frozenset().union(*(part.tasks for part in parts)),
        sum(part.bytes for part in parts),
        None if None in distinct else sum(distinct),
        max(part.times for part in parts),
    )


def _opens(columns: Columns) -> dict[tuple[int, int], int]:
    """Openings that went well and that the program made itself, by name and task."""
    opens = merged(columns.where(columns.by_code("O") & ~columns.is_below), "name", "rank")
    return {(name, rank): calls - errors for name, rank, calls, errors in zip(*(getattr(opens, key).tolist() for key in ("name", "rank", "calls", "errors")))}


def _order(one: Reread) -> tuple:
    return -one.extra, one.distinct is None, -one.bytes, one.step, one.row.pattern.text
