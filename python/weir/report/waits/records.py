# SPDX-License-Identifier: Apache-2.0
"""Records of MPI and marks, and the I/O intervals of a rank, taken out of a step's trace files as
arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cache
from typing import TypeVar

import numpy as np

from weir.analysis.columns import class_codes
from weir.analysis.names import NO_NAME, NameTable
from weir.analysis.remote import for_each
from weir.analysis.step import StepData, name_numbers
from weir.trace._abi import Cursor
from weir.trace.events import Events, next_events
from weir.trace.file import EVENTS, LOST
from weir.trace.ops import MPI, NESTED, ops

_ID = np.dtype([("process", "<u4"), ("file", "<u4")])


@cache
def silent_ops() -> dict[str, int]:
    """Operations that are no I/O, by name."""
    return {op.name: value for value, op in ops().items() if op.op_class == "X"}


def _chosen(names: Iterable[str]) -> np.ndarray:
    table = np.zeros(256, bool)
    table[[silent_ops()[name] for name in names if name in silent_ops()]] = True
    return table


Table = TypeVar("Table")  # a dataclass of arrays of one length


def rows_of(table: Table, mask: np.ndarray) -> Table:
    """The rows that a mask or order chooses."""
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
        return self.where(_chosen(names)[self.op])


def records_of(data: StepData, names: NameTable, *wanted: str) -> Records:
    """All records of some operations that are no I/O; nothing is read when the step has none."""
    members = np.unique(data.columns.member[_chosen(wanted)[data.columns.op]]).tolist()
    return _joined(for_each(_records_of_one, data, names, [(member, wanted) for member in members]))


def _records_of_one(data: StepData, names: NameTable, member: int,
        wanted: tuple[str, ...]) -> Records:
    table, parts = _chosen(wanted), []
    for batch, number in _batches(data, member, names, None, _chunks_of(data, member), table):
        who = np.full(len(number), member, np.int32)
        end = batch["start_ns"] + batch["duration_ns"]
        parts.append(
            Records(
                who, batch["thread"], batch["op"], batch["flags"], number, batch["start_ns"], end,
                batch["offset"], batch["bytes"],
            )  # fmt: skip
        )
    return _joined(parts)


def _joined(parts: list[Records]) -> Records:
    kinds = dict(member=np.int32, thread=np.uint32, op=np.uint8, flags=np.uint8, name=np.int32)
    nothing = Records(*(np.empty(0, kinds.get(field.name, np.int64)) for field in fields(Records)))
    return Records(*(np.concatenate([getattr(one, field.name) for one in [nothing, *parts]])
        for field in fields(Records)))


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


def threads_of(data: StepData, member: int) -> np.ndarray:
    """Threads of a member that made records."""
    chunks = data.files[data.members[member].file].array("chunks")
    return np.unique(chunks["thread"][_chunks_of(data, member)])


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
    chunks = data.files[one.file].array("chunks")
    return np.flatnonzero((chunks["kind"] == EVENTS) & (chunks["process"] == one.process.index))


def _batches(
    data: StepData, member: int, names: NameTable,
    choose: Callable[[Events], np.ndarray] | None, at_chunks: np.ndarray,
    wanted: np.ndarray | None = None,
) -> Iterator[tuple[Events, np.ndarray]]:  # fmt: skip
    """The chosen records of a member (None: all) of the wanted operations in some of its chunks,
    chunk by chunk, with the numbers of their names."""
    one = data.members[member]
    file, clock, numbers = data.files[one.file], data.lines[one.file].native(
        ), data.name_numbers[one.file]
    chunks = file.array("chunks")
    for at in at_chunks.tolist():
        # more than there are: what has been read to its end leaves memory
        room = int(chunks["entries"][at]) + 1
        batch = next_events(file, clock, Cursor(chunk=at, end_chunk=at + 1), room, wanted)
        chosen = np.ones(len(batch["op"]), bool) if choose is None else choose(batch)
        if not chosen.any():
            continue
        batch = {key: column[chosen] for key, column in batch.items()}  # no part of a large array
        number = np.r_[numbers, np.int32(NO_NAME)][np.minimum(batch["text"], len(numbers))]
        lost = np.flatnonzero((batch["text"] == LOST) & (batch["file"] != 0))
        if len(lost):
            asked = np.zeros(len(lost), _ID)
            asked["process"], asked["file"] = one.process.index, batch["file"][lost]
            number[lost] = name_numbers(file, asked, names, numbers)
        yield batch, number
