# SPDX-License-Identifier: Apache-2.0
"""What a rank is in, at timestamps that are known before, and how long its calls on files last
between them: passes over its records in native/reader (line.cc, shares.cc)."""

from __future__ import annotations

import ctypes as c
from dataclasses import dataclass

import numpy as np

from weir.analysis.columns import class_codes
from weir.analysis.step import StepData, name_numbers
from weir.analysis.names import NameTable
from weir.trace._abi import (
    CALL_ROW, Edges, LineCalls, LINE_FIGURES, MEMBER, line_functions, pointer_to
)  # fmt: skip
from weir.trace.ops import MPI, NESTED

IO, CALLS, LIBRARY, ALL_IO, ALL_CALLS, ALL_LIBRARY, BESIDE_IO, TIME, ALL_TIME = range(LINE_FIGURES)
ROOM_INTERVALS = 1 << 17  # of a union, that wait to be joined
EVERY_THREAD = -1


@dataclass(frozen=True)
class LineOf:
    """Whose calls make a line: those of one thread of a process, and all of the programs that it
    started. members: of the step, the process itself first; thread: of it, or EVERY_THREAD;
    callers: other threads of it that have lines of their own, rising."""

    members: tuple[int, ...]
    thread: int = EVERY_THREAD
    callers: tuple[int, ...] = ()


def _members(data: StepData, line: LineOf) -> np.ndarray:
    made = np.zeros(len(line.members), MEMBER)
    for at, index in enumerate(line.members):
        one = data.members[index]
        clock = data.lines[one.file].native()
        is_whole = at > 0 or line.thread == EVERY_THREAD
        made[at] = (
            data.files[one.file].handle, clock.origin_ticks, clock.base_ns, clock.multiplier,
            one.process.index, 0 if is_whole else line.thread, is_whole, 0,
        )  # fmt: skip
    return made


def rising(*timestamps: np.ndarray) -> np.ndarray:
    """All of them, each once. Faster than numpy's unique where each array mostly rises."""
    made = np.concatenate([np.empty(0, np.int64), *timestamps])
    made.sort(kind="stable")
    return made[np.r_[True, made[1:] != made[:-1]][: len(made)]]


def lengths_of(data: StepData, line: LineOf, at_ns: np.ndarray, *unions: int) -> np.ndarray:
    """Of each union or sum a row: its length up to each timestamp (rising). cost: a pass over the
    records of the members."""
    return _lengths(data, line, at_ns, unions)[0][list(unions)]


@dataclass(frozen=True)
class KnownLengths:
    """What a pass found of a line: lengths of unions and sums, by their number, up to timestamps
    (rising)."""

    at_ns: np.ndarray
    of_union: dict[int, np.ndarray]

    @staticmethod
    def found(data: StepData, line: LineOf, at_ns: np.ndarray, *unions: int) -> KnownLengths:
        """By one pass. Rows that are equal are kept once."""
        kept: list[np.ndarray] = []
        of_union = {}
        for union, row in zip(unions, lengths_of(data, line, at_ns, *unions)):
            same = next((one for one in kept if np.array_equal(one, row)), None)
            of_union[union] = row.copy() if same is None else same
            kept += [of_union[union]] if same is None else []
        return KnownLengths(at_ns, of_union)

    def at(self, at_ns: np.ndarray, *unions: int) -> np.ndarray | None:
        """As lengths_of() gives them; None when some timestamp is not known."""
        at = np.searchsorted(self.at_ns, at_ns)
        if len(at) and not (at.max() < len(self.at_ns)
                and np.array_equal(self.at_ns[at], at_ns)):  # fmt: skip
            return None
        return np.stack([self.of_union[union][at] for union in unions])


def lengths_and_lasts(data: StepData, line: LineOf, at_ns: np.ndarray) -> tuple[np.ndarray, ...]:
    """Of the I/O of all threads up to each timestamp: its length, and where the last call that
    began before ends, cut there; long ago where there is none."""
    lengths, lasts = _lengths(data, line, at_ns, (ALL_IO,), with_lasts=True)
    return lengths[ALL_IO], lasts


def _lengths(
    data: StepData, line: LineOf, at_ns: np.ndarray, unions: tuple[int, ...],
    with_lasts: bool = False,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    at_ns = np.ascontiguousarray(at_ns, np.int64)
    lengths = np.zeros((LINE_FIGURES, len(at_ns)), np.int64)
    lasts = np.full(len(at_ns) if with_lasts else 0, np.iinfo(np.int64).min)
    members, callers = _members(data, line), np.array(line.callers, np.uint32)
    wanted = sum(1 << union for union in set(unions))
    asked = LineCalls(
        pointer_to(members), len(members), pointer_to(callers), len(callers), pointer_to(at_ns),
        len(at_ns), ROOM_INTERVALS, wanted, 0,
    )  # fmt: skip
    into = pointer_to(lasts) if with_lasts else None
    if len(at_ns) and line_functions()[0](c.byref(asked), pointer_to(lengths), into):
        raise MemoryError("no memory for the calls of a rank")
    return lengths, lasts


@dataclass(frozen=True)
class CallRows:
    """Calls on files of the members of a line by file and operation. table: as the library wants
    it; first: where the rows of each member begin; name, op: of each row."""

    table: np.ndarray
    first: np.ndarray
    name: np.ndarray
    op: np.ndarray


def call_rows(data: StepData, names: NameTable, line: LineOf) -> CallRows:
    """Of all calls of I/O that lie within no other."""
    codes, parts, numbers = class_codes(), [], []
    for index in line.members:
        one = data.members[index]
        file = data.files[one.file]
        rows = file.rows_of(one.process.index, one.process.index + 1)
        code = codes[rows["op"]]
        kept = (code != 0) & (code != ord("X")) & (rows["layer"] <= MPI) & (rows["is_file"] != 0)
        kept &= (rows["flags"] & NESTED) == 0
        rows = rows[kept]
        _, first = np.unique(rows["file"].astype(np.int64) << 8 | rows["op"], return_index=True)
        rows = rows[first]
        made = np.zeros(len(rows), CALL_ROW)
        made["file"], made["op"] = rows["file"], rows["op"]
        parts.append(made)
        numbers.append(name_numbers(file, rows, names, data.name_numbers[one.file]))
    table = np.concatenate([np.empty(0, CALL_ROW), *parts])
    table["row"] = np.arange(len(table))
    first = np.cumsum([0, *map(len, parts)]).astype(np.uint64)
    return CallRows(table, first, np.concatenate([np.empty(0, np.int32), *numbers]), table["op"])


class Cells:
    """Calls of a line between edges (rising): how long they lasted in each cell, and what they
    cost."""

    def __init__(self, data: StepData, line: LineOf, rows: CallRows, edges_ns: np.ndarray):
        self._kept = (
            _members(data, line), np.ascontiguousarray(rows.first),
            np.ascontiguousarray(rows.table), np.ascontiguousarray(edges_ns, np.int64),
        )  # fmt: skip
        members, first, table, edges = map(pointer_to, self._kept)
        count = len(edges_ns)
        self._edges = Edges(members, len(self._kept[0]), first, table, edges, count)
        self.rows, self.cells = len(rows.table), max(count - 1, 0)

    def time(self, rows: int) -> np.ndarray:
        """By row (number in the table) and cell, ns."""
        found = np.zeros((rows, self.cells), np.int64)
        if self.cells and line_functions()[1](c.byref(self._edges), rows, pointer_to(found)):
            raise MemoryError("no memory for the time of calls")
        return found

    def shares(self, sums: np.ndarray) -> np.ndarray:
        """By row and cost. sums: by edge and cost, what a call costs that lasts from the first edge
        to it."""
        sums = np.ascontiguousarray(sums, np.float64)
        found = np.zeros((self.rows, sums.shape[1]))
        if self.cells and line_functions()[2](
            c.byref(self._edges), sums.shape[1], pointer_to(sums), pointer_to(found)
        ):
            raise MemoryError("no memory for the cost of calls")
        return found
