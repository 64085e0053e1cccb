# SPDX-License-Identifier: Apache-2.0
"""Records of MPI and marks, and the I/O intervals of a rank, taken out of a step's trace files as
arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cache
from typing import TypeVar

import numpy as np

from weir.analysis.columns import class_codes, distinct
from weir.analysis.names import NO_NAME, NameTable
from weir.analysis.remote import for_each
from weir.analysis.step import StepData, name_numbers
from weir.trace import TraceFile
from weir.trace._abi import Cursor
from weir.trace.events import ROWS, Events, next_events
from weir.trace.file import EVENTS, LOST
from weir.trace.ops import MPI, NESTED, ops

SKIPPED_BYTES = 1 << 19  # of chunks: reading less costs no more than beginning anew behind it
_ID = np.dtype([("process", "<u4"), ("file", "<u4")])


@cache
def silent_ops() -> dict[str, int]:
    """Operations that are no I/O, by name."""
    return {op.name: value for value, op in ops().items() if op.op_class == "X"}


def chosen(names: Iterable[str]) -> np.ndarray:
    """By operation whether it is one of these."""
    table = np.zeros(256, bool)
    table[[silent_ops()[name] for name in names if name in silent_ops()]] = True
    return table


Table = TypeVar("Table")  # a dataclass of arrays of one length


def rows_of(table: Table, mask: np.ndarray) -> Table:
    """The rows that a mask or order chooses; the table itself where a mask chooses all."""
    if mask.dtype == bool and mask.all():
        return table
    return type(table)(*(getattr(table, field.name)[mask]
        for field in fields(table)))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Records:
    """Arrays of one length. member: index of the process in its step; name: number of the name, -1
    none; timestamps in ns, nodes aligned."""

    member: np.ndarray
    thread: np.ndarray
    op: np.ndarray
    flags: np.ndarray
    name: np.ndarray
    start: np.ndarray
    end: np.ndarray
    offset: np.ndarray  # -1: unknown
    size: np.ndarray

    def __len__(self) -> int:
        return len(self.member)

    def where(self, mask: np.ndarray) -> Records:
        return rows_of(self, mask)

    def of(self, *names: str) -> Records:
        """Those of some operations."""
        return self.where(chosen(names)[self.op])


def records_of(data: StepData, names: NameTable, *wanted: str) -> Records:
    """All records of some operations that are no I/O; nothing is read when the step has none.
    cost: a pass over the records of the members that have some, trace file by trace file."""
    seen = data.sums.by_member
    members = distinct(seen.member[chosen(wanted)[seen.op]])
    limits = np.cumsum([0, *(len(one.processes) for one in data.files)])
    begins = np.searchsorted(members, limits)
    pieces = [(index, members[begin:end] - limits[index], int(limits[index]), wanted)
        for index, (begin, end) in enumerate(zip(begins, begins[1:])) if begin < end]
    return _joined(for_each(_records_of_file, data, names, pieces))


def _records_of_file(
    data: StepData, names: NameTable, index: int, processes: np.ndarray, first: int,
    wanted: tuple[str, ...],
) -> Records:  # fmt: skip
    """Of some processes of a trace file, process by process. first: member of process 0."""
    file, clock, table = data.files[index], data.lines[index].native(), chosen(wanted)
    parts = []
    for begin, end in _runs(file, processes):
        cursor, count = Cursor(chunk=begin, end_chunk=end), ROWS
        while count == ROWS:
            batch = next_events(file, clock, cursor, ROWS, table)
            count = len(batch["op"])
            parts.append(
                Records(
                    batch["process"].astype(np.int32) + np.int32(first), batch["thread"].copy(),
                    batch["op"].copy(), batch["flags"].copy(), _numbers(data, index, batch, names),
                    batch["start_ns"].copy(), batch["start_ns"] + batch["duration_ns"],
                    batch["offset"].copy(), batch["bytes"].copy(),
                )  # fmt: skip
            )
    file.leave()
    found = _joined(parts)
    is_sorted = not (found.member[1:] < found.member[:-1]).any()
    return found if is_sorted else found.where(np.argsort(found.member, kind="stable"))


def _runs(file: TraceFile, processes: np.ndarray) -> Iterator[tuple[int, int]]:
    """Places of chunks, from the first on and before the second: all that some processes have with
    records of calls that are no I/O, no other process's, and little I/O between them."""
    chunks = file.array("chunks")
    places = np.flatnonzero(chunks["kind"] == EVENTS)
    is_theirs = np.isin(chunks["process"][places], processes)
    is_wanted = is_theirs & (chunks["silent"][places] != 0)
    size_bytes = chunks["size_bytes"][places]
    for begin, end in _stretches(is_theirs & ~is_wanted):
        is_wanted[begin:end] = size_bytes[begin:end].sum() < SKIPPED_BYTES
    for begin, end in _stretches(is_wanted):
        yield int(places[begin]), int(places[end - 1]) + 1


def _stretches(mask: np.ndarray) -> Iterator[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.r_[False, mask, False].astype(np.int8)))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist())


def _joined(parts: list[Records]) -> Records:
    """Takes the parts away: a column of them all is there twice, not all columns."""
    kinds = dict(member=np.int32, thread=np.uint32, op=np.uint8, flags=np.uint8, name=np.int32)
    names = [field.name for field in fields(Records)]
    columns = [[np.empty(0, kinds.get(name, np.int64)), *(getattr(one, name) for one in parts)]
        for name in names]
    parts.clear()
    made = []
    for pieces in columns:
        made.append(np.concatenate(pieces))
        pieces.clear()
    return Records(*made)


@dataclass(frozen=True)
class Calls:
    """I/O calls on files, in ns. is_own: its time lies within no other record of the thread."""

    start: np.ndarray
    end: np.ndarray
    name: np.ndarray
    op: np.ndarray
    is_own: np.ndarray

    def own(self) -> Calls:
        return rows_of(self, self.is_own)


@cache
def _is_io() -> np.ndarray:
    codes = class_codes()
    return (codes != 0) & (codes != ord("X"))


def calls_of(data: StepData, members: Iterable[int], names: NameTable) -> Iterator[Calls]:
    """I/O on files of some members, chunk by chunk: pipes, devices and what event layers saw are
    left out."""
    for member in members:
        kept = _io_on_files(data, member)
        yield from _calls(data, member, names, kept, _chunks_of(data, member))


def _io_on_files(data: StepData, member: int) -> Callable[[Events], np.ndarray]:
    is_file = np.r_[data.files[data.members[member].file].array("texts")["is_file"] != 0, True]

    def kept(batch: Events) -> np.ndarray:
        mask = _is_io()[batch["op"]] & (batch["layer"] <= MPI)
        mask &= is_file[np.minimum(batch["text"], len(is_file) - 1)]
        return mask

    return kept


def _calls(data: StepData, member: int, names: NameTable, kept: Callable[[Events], np.ndarray],
        chunks: np.ndarray) -> Iterator[Calls]:
    for batch, number in _batches(data, member, names, kept, chunks):
        start = batch["start_ns"]
        yield Calls(start, start + batch["duration_ns"], number, batch["op"],
            (batch["flags"] & NESTED) == 0)


def _chunks_of(data: StepData, member: int) -> np.ndarray:
    """The places of a member's chunks of records in the table of its file."""
    one = data.members[member]
    return data.files[one.file].chunks_of(one.process.index)


def _batches(
    data: StepData, member: int, names: NameTable,
    choose: Callable[[Events], np.ndarray], at_chunks: np.ndarray,
) -> Iterator[tuple[Events, np.ndarray]]:  # fmt: skip
    """The chosen records of a member in some of its chunks, chunk by chunk, with the numbers of
    their names."""
    one = data.members[member]
    file, clock = data.files[one.file], data.lines[one.file].native()
    chunks = file.array("chunks")
    for at in at_chunks.tolist():
        # more than there are: what has been read to its end leaves memory
        room = int(chunks["entries"][at]) + 1
        batch = next_events(file, clock, Cursor(chunk=at, end_chunk=at + 1), room)
        chosen = choose(batch)
        if not chosen.any():
            continue
        batch = {key: column[chosen] for key, column in batch.items()}  # no part of a large array
        yield batch, _numbers(data, one.file, batch, names)


def _numbers(data: StepData, index: int, batch: Events, names: NameTable) -> np.ndarray:
    """Of the name of each record of a trace file."""
    numbers = data.name_numbers[index]
    number = np.r_[numbers, np.int32(NO_NAME)][np.minimum(batch["text"], len(numbers))]
    lost = np.flatnonzero((batch["text"] == LOST) & (batch["file"] != 0))
    if len(lost):
        asked = np.zeros(len(lost), _ID)
        asked["process"], asked["file"] = batch["process"][lost], batch["file"][lost]
        number[lost] = name_numbers(data.files[index], asked, names, numbers)
    return number
