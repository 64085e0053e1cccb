# SPDX-License-Identifier: Apache-2.0
"""What a rank is in, at timestamps that are known before, and how long its calls on files last
between them: passes over its records in native/reader (line.cc, shares.cc)."""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from weir.analysis.columns import class_codes
from weir.analysis.step import StepData, name_numbers
from weir.analysis.names import NameTable
from weir.trace import _abi as native
from weir.trace._abi import (
    CALL_ROW, Edges, LineCalls, LINE_FIGURES, MEMBER, line_functions, pointer_to
)  # fmt: skip
from weir.trace.ops import MPI, has_own_time

IO, CALLS, LIBRARY, ALL_IO, ALL_CALLS, ALL_LIBRARY, BESIDE_IO, TIME, ALL_TIME = range(LINE_FIGURES)
ROOM_INTERVALS = 1 << 17  # of a union, that wait to be joined
TIMESTAMPS_AT_ONCE = 1 << 17  # about, of a line
ALWAYS = -(2**63)  # since when calls count: all do
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
    found = _rows_of(data, line, at_ns, *unions)
    return np.stack([found[union] for union in unions])


# Where the line has every thread.
_SAME = {ALL_IO: IO, BESIDE_IO: IO, ALL_CALLS: CALLS, ALL_LIBRARY: LIBRARY, ALL_TIME: TIME}


def _rows_of(
    data: StepData, line: LineOf, at_ns: np.ndarray, *unions: int, since_ns: int = ALWAYS
) -> dict[int, np.ndarray]:
    """By union or sum; those that are the same are one array."""
    same = _SAME if line.thread == EVERY_THREAD else {}
    rows = {same.get(one, one) for one in unions}
    lengths, _ = _lengths(data, line, at_ns, tuple(rows), since_ns=since_ns)
    row = {one: lengths[one] for one in rows}
    return {one: row[same.get(one, one)] for one in unions}


@dataclass(frozen=True)
class KnownLengths:
    """What a pass found of a line: lengths of unions and sums, by their number, up to timestamps
    (rising). Those that are the same are one array."""

    at_ns: np.ndarray
    of_union: dict[int, np.ndarray]

    def at(self, at_ns: np.ndarray, *unions: int) -> np.ndarray | None:
        """As lengths_of() gives them; None when some timestamp is not known. What does not grow
        between two timestamps is known between them."""
        count = len(self.at_ns)
        if not count:
            return None if len(at_ns) else np.zeros((len(unions), 0), np.int64)
        high = np.minimum(np.searchsorted(self.at_ns, at_ns), count - 1)
        low = np.where(self.at_ns[high] == at_ns, high, high - 1)
        found = [self.of_union[union][high] for union in unions]
        if (low < 0).any() or (self.at_ns[high] < at_ns).any():
            return None
        if not all(np.array_equal(self.of_union[union][low], row)
                for union, row in zip(unions, found)):  # fmt: skip
            return None
        return np.stack(found)

    def only(self, mask: np.ndarray, *unions: int) -> KnownLengths:
        """At some of the timestamps, and no more of these unions than asked for."""
        made: dict[int, np.ndarray] = {}
        for union in unions:
            row = self.of_union[union]
            same = next((one for one in made if self.of_union[one] is row), None)
            made[union] = row[mask] if same is None else made[same]
        return KnownLengths(self.at_ns[mask], made)

    def changing(self, *unions: int) -> KnownLengths:
        """As much as at() needs: without timestamps around which no union grows."""
        mask = np.zeros(len(self.at_ns), bool)
        mask[:1] = mask[-1:] = True
        for union in unions:
            grows = np.diff(self.of_union[union]) != 0
            mask[1:] |= grows
            mask[:-1] |= grows
        return self.only(mask, *unions)

    @staticmethod
    def joined(parts: list[KnownLengths]) -> KnownLengths:
        """Of windows one behind the other."""
        if len(parts) == 1:
            return parts[0]
        made: dict[int, np.ndarray] = {}
        first = parts[0].of_union
        for union, row in first.items():
            same = next((one for one in made if first[one] is row), None)
            made[union] = made[same] if same is not None else np.concatenate(
                [one.of_union[union] for one in parts])
        return KnownLengths(np.concatenate([one.at_ns for one in parts]), made)


def known_in_windows(
    data: StepData, line: LineOf, sides: Sequence[np.ndarray], unions: Sequence[int]
) -> Iterator[KnownLengths]:
    """Lengths at all timestamps of some arrays (each rising), window by window: as many timestamps
    as fit little memory. cost: one pass, and the chunks at the edges of windows once more."""
    least = min((int(one[0]) for one in sides if len(one)), default=0)
    most = max((int(one[-1]) for one in sides if len(one)), default=0)
    longest = max(sides, key=len)
    step = max(TIMESTAMPS_AT_ONCE * len(longest) // max(sum(map(len, sides)), 1), 1)
    cuts = np.unique(np.append(longest[step::step], most))
    firsts, before, since_ns = [0] * len(sides), dict.fromkeys(unions, 0), ALWAYS
    for cut in cuts[cuts >= least].tolist():
        lasts = [int(np.searchsorted(one, cut, "right")) for one in sides]
        at = rising(np.array([cut]), *(one[slice(*of)]
            for one, *of in zip(sides, firsts, lasts)))
        rows = _rows_of(data, line, at, *unions, since_ns=since_ns)
        if since_ns != ALWAYS:
            for key in {id(row): union for union, row in rows.items()}.values():
                rows[key] += before[key]
        before, firsts, since_ns = {one: int(rows[one][-1]) for one in unions}, lasts, cut
        yield KnownLengths(at, rows)


def lengths_and_lasts(data: StepData, line: LineOf, at_ns: np.ndarray) -> tuple[np.ndarray, ...]:
    """Of the I/O of all threads up to each timestamp: its length, and where the last call that
    began before ends, cut there; long ago where there is none."""
    lengths, lasts = _lengths(data, line, at_ns, (ALL_IO,), with_lasts=True)
    return lengths[ALL_IO], lasts


def _lengths(
    data: StepData, line: LineOf, at_ns: np.ndarray, unions: tuple[int, ...],
    with_lasts: bool = False, since_ns: int = ALWAYS,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    at_ns = np.ascontiguousarray(at_ns, np.int64)
    lengths = np.zeros((LINE_FIGURES, len(at_ns)), np.int64)
    lasts = np.full(len(at_ns) if with_lasts else 0, np.iinfo(np.int64).min)
    members, callers = _members(data, line), np.array(line.callers, np.uint32)
    wanted = sum(1 << union for union in set(unions))
    asked = LineCalls(
        pointer_to(members), len(members), pointer_to(callers), len(callers), pointer_to(at_ns),
        len(at_ns), ROOM_INTERVALS, wanted, 0, since_ns,
    )  # fmt: skip
    into = pointer_to(lasts) if with_lasts else None
    if len(at_ns) and line_functions()[0](c.byref(asked), pointer_to(lengths), into):
        raise MemoryError("no memory for the calls of a rank")
    return lengths, lasts


@dataclass(frozen=True)
class Side:
    """Timestamps of several lines, those of each together, in any order: how many of each; and the
    unions and sums that are wanted there."""

    at_ns: np.ndarray
    counts: np.ndarray
    unions: tuple[int, ...]


def _firsts(counts: Iterable[int] | np.ndarray) -> np.ndarray:
    counts = np.fromiter(counts, np.uint64) if not isinstance(counts, np.ndarray) else counts
    return np.r_[np.uint64(0), np.cumsum(counts, dtype=np.uint64)]


def lengths_of_lines(
    data: StepData, lines: Sequence[LineOf], sides: Sequence[Side]
) -> list[dict[int, np.ndarray]]:
    """By side and union the lengths at its timestamps. cost: a pass over the records of all members
    of these lines; memory for the answers."""
    members = np.concatenate([np.empty(0, MEMBER), *(_members(data, one) for one in lines)])
    callers = np.array([one for line in lines for one in line.callers], np.uint32)
    first_member, first_caller = (_firsts(len(part) for part in parts) for parts in
        ([one.members for one in lines], [one.callers for one in lines]))
    answers = [{one: np.zeros(len(side.at_ns), np.int64) for one in side.unions} for side in sides]
    kept = [(np.ascontiguousarray(side.at_ns, np.int64), _firsts(side.counts)) for side in sides]
    asked = (native.Side * len(sides))()
    for side, arrays, answer in zip(asked, kept, answers):
        side.at_ns, side.first = map(pointer_to, arrays)
        for union, lengths in answer.items():
            side.lengths[union] = pointer_to(lengths)
    found = native.Lines(
        len(lines), *map(pointer_to, (members, first_member, callers, first_caller)), asked,
        len(sides), ROOM_INTERVALS,
    )  # fmt: skip
    if native.lines_function()(c.byref(found)):
        raise MemoryError("no memory for the calls of ranks")
    return answers


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
        kept &= has_own_time(rows["op"], rows["layer"], rows["flags"])
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
