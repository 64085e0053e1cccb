# SPDX-License-Identifier: Apache-2.0
"""What strands did in front of operations and in them, and how long ranks were in I/O while others
waited for them: a pass over the records of all ranks.

A strand that is asked at many timestamps is a piece of work by itself, read in windows of time. Of
many strands that are asked at few of them, those side by side are one piece: what Python does for a
piece costs more than the records of a rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from weir.analysis.ahead import Begun, begin
from weir.analysis.causes import Causes
from weir.analysis.columns import order_of
from weir.analysis.lines import (
    ALL_CALLS, ALL_IO, ALL_TIME, BESIDE_IO, CALLS, EVERY_THREAD, IO, TIME, TIMESTAMPS_AT_ONCE,
    KnownLengths, LineOf, Side, known_in_windows, lengths_of_lines,
)  # fmt: skip
from weir.analysis.names import NameTable
from weir.analysis.remote import answers_of
from weir.analysis.step import StepData
from weir.report.waits.critical import Spent
from weir.report.waits.locations import Locations
from weir.report.waits.operations import Operations
from weir.trace.file import EVENTS

FEW_STRANDS = 64  # each of them is a piece
ALONE = 1 << 13  # timestamps of a strand that is a piece
STATES = (IO, CALLS, ALL_IO, ALL_CALLS)  # what causes.run() needs
_LIKE = {ALL_IO: IO, ALL_CALLS: CALLS}  # of lines with every thread
Pair = tuple[np.ndarray, np.ndarray]  # begins and ends


class Windows:
    """Stretches of time of ranks, and where those of each rank stand."""

    def __init__(self, location: np.ndarray, begins: np.ndarray, ends: np.ndarray, count: int):
        self.location, self.begins, self.ends = location, begins, ends
        self._order = order_of(location).astype(np.int32)
        self.first = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(location, minlength=count), out=self.first[1:])

    def of(self, low: int, high: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, begins and ends of the ranks from `low` to before `high`, rank by rank."""
        rows = self._order[self.first[low] : self.first[high]]
        return rows, self.begins[rows], self.ends[rows]


@dataclass(frozen=True)
class Seen:
    """in_waits, in_spans: I/O of ranks while others waited for them and in spans, ns. known: what
    is known of the line of each strand where _job_costs() needs it; None: nothing. caused: what
    causes.run() finds meanwhile, None where a rank has no line."""

    spent: Spent
    in_waits: np.ndarray
    in_spans: np.ndarray
    known: list[KnownLengths | None]
    caused: Begun | None


def lines_of(data: StepData, locations: Locations, found: Operations) -> list[LineOf]:
    """By strand. A thread that calls MPI beside the main one has a line of its own; that of a
    process with one thread is the whole process."""
    least, most = _threads_of(data)
    first = np.searchsorted(found.location_of_strand, np.arange(len(locations) + 1)).tolist()
    speakers, made = locations.speaker.tolist(), []
    for strand, (location, thread, is_main) in enumerate(zip(found.location_of_strand.tolist(),
            found.thread.tolist(), found.main.tolist())):  # fmt: skip
        member, calling = speakers[location], ()
        others = tuple(one for one in locations.members[location] if one != member)
        low, high = first[location : location + 2]
        if high - low > 1:
            calling = tuple(np.setdiff1d(found.thread[low:high], [thread]).tolist())
        is_alone = thread < 0 or most[member] < 0 or least[member] == most[member] == thread
        made.append(LineOf((member, *others) if is_main else (member,),
            EVERY_THREAD if is_alone else thread, calling))
    return made


def _threads_of(data: StepData) -> tuple[list[int], list[int]]:
    """The least and the greatest number of the threads of each member that made records; -1 where
    there are none."""
    parts = [np.empty((2, 0), np.int64)]  # of a step without a readable file
    for file in data.files:
        chunks = file.array("chunks")
        chunks = chunks[chunks["kind"] == EVENTS]
        least, most = np.full((2, len(file.processes)), -1, np.int64)
        least[chunks["process"]] = chunks["thread"]
        np.minimum.at(least, chunks["process"], chunks["thread"].astype(np.int64))
        np.maximum.at(most, chunks["process"], chunks["thread"].astype(np.int64))
        parts.append(np.stack((least, most)))
    least, most = np.concatenate(parts, axis=1)
    return least.tolist(), most.tolist()


@dataclass(frozen=True)
class _Piece:
    """Strands side by side. Arrays of all of them, strand by strand, and how many timestamps each
    has there; waits and spans: of their ranks, with the main strand of each."""

    lines: tuple[LineOf, ...]
    main: np.ndarray
    points: np.ndarray
    points_count: np.ndarray
    gaps: Pair
    behind: Pair
    ops_count: np.ndarray
    waits: Pair
    waits_count: np.ndarray
    spans: Pair
    spans_count: np.ndarray


@dataclass(frozen=True)
class _Answer:
    """own, calls, within, beside: by operation, as Spent has them; beside: I/O of other threads
    too, None where there are none. states: by union at the points."""

    own: np.ndarray
    calls: np.ndarray
    within: np.ndarray
    beside: np.ndarray | None
    in_waits: np.ndarray
    in_spans: np.ndarray
    known: KnownLengths | None
    states: dict[int, np.ndarray]

    def state(self, union: int) -> np.ndarray:
        """Lines with every thread have two of them alone."""
        return self.states[union if union in self.states else _LIKE[union]]


def seen_in(
    data: StepData, names: NameTable, found: Operations, lines: list[LineOf], waits: Windows,
    spans: Windows, causes: Causes,
) -> Seen:  # fmt: skip
    """cost: a pass over the records of all ranks."""
    ranges = list(_ranges(found, waits, spans, causes))
    pieces = _pieces(found, lines, waits, spans, causes, ranges)
    is_line = bool((found.thread >= 0).all())
    io = [np.zeros(len(one.location), np.int64) for one in (waits, spans)]
    known: list[KnownLengths | None] = []
    by_op: tuple[list, ...] = ([], [], [], [])  # own, calls, within and own or beside
    for (low, high), answer in zip(ranges, answers_of(_answer, data, names, pieces)):
        of = _ranks_of(found, low, high)
        for one, into, ns in zip((waits, spans), io, (answer.in_waits, answer.in_spans)):
            into[one.of(*of)[0]] = ns
        known += [answer.known] * (high - low)
        if is_line:
            causes.give(low, high, [answer.state(union) for union in STATES])
        every = answer.own if answer.beside is None else answer.beside
        for part, ns in zip(by_op, (answer.own, answer.calls, answer.within, every)):
            part.append(ns)
    del pieces
    caused = begin(causes.run)[0] if is_line else None
    is_same = all(one is other for one, other in zip(by_op[0], by_op[3]))
    own, calls, within = map(_joined, by_op[:3])
    every = own if is_same else _joined(by_op[3])
    return Seen(Spent(own, every, calls, within), *io, known, caused)


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.empty(0, np.int64), *parts])


def _ranges(
    found: Operations, waits: Windows, spans: Windows, causes: Causes
) -> Iterator[tuple[int, int]]:
    """The first strand of each piece, and that behind its last one."""
    if found.strands <= FEW_STRANDS:
        yield from ((one, one + 1) for one in range(found.strands))
        return
    of_windows = sum(np.diff(one.first) for one in (waits, spans))
    weights = 4 * np.bincount(found.replay.strand, minlength=found.strands)
    weights += np.where(found.main, 2 * of_windows[found.location_of_strand], 0)
    low = weight = 0
    for strand, its in enumerate(weights.tolist()):
        if its > ALONE:
            if low < strand:
                yield low, strand
            yield strand, strand + 1
            low, weight = strand + 1, 0
            continue
        weight += its
        if weight > TIMESTAMPS_AT_ONCE:
            yield low, strand + 1
            low, weight = strand + 1, 0
    if low < found.strands:
        yield low, found.strands


def _ranks_of(found: Operations, low: int, high: int) -> tuple[int, int]:
    """The ranks of the main strands among these: the first, and that behind the last."""
    locations = found.location_of_strand[low:high][found.main[low:high]]
    return (int(locations[0]), int(locations[-1]) + 1) if len(locations) else (0, 0)


def _pieces(
    found: Operations, lines: list[LineOf], waits: Windows, spans: Windows, causes: Causes,
    ranges: list[tuple[int, int]],
) -> list[tuple[_Piece]]:  # fmt: skip
    replay, gaps = found.replay, found.replay.gaps()
    first = np.searchsorted(replay.strand, np.arange(found.strands + 1))
    made = []
    for low, high in ranges:
        main = found.main[low:high]
        ops, of = slice(int(first[low]), int(first[high])), _ranks_of(found, low, high)
        locations = found.location_of_strand[low:high]

        def counts(of_ranks: Windows, main: np.ndarray = main,
                locations: np.ndarray = locations) -> np.ndarray:
            return np.where(main, np.diff(of_ranks.first)[locations], 0)

        made.append((_Piece(
            tuple(lines[low:high]), main, causes.points(low, high),
            np.diff(causes.first[low : high + 1]),
            (gaps[0][ops], gaps[1][ops]), (found.until_ns[ops], replay.end_ns[ops]),
            np.diff(first[low : high + 1]), waits.of(*of)[1:], counts(waits), spans.of(*of)[1:],
            counts(spans),
        ),))  # fmt: skip
    return made


def _answer(data: StepData, names: NameTable, piece: _Piece) -> _Answer:
    return (_of_one if len(piece.lines) == 1 else _of_several)(data, piece)


def _of_several(data: StepData, piece: _Piece) -> _Answer:
    """As _of_one() finds them for each. What is known of a line is not kept: few of them cost
    something, of which it is found once more."""
    has_others = np.array([one.thread != EVERY_THREAD for one in piece.lines]) & piece.main
    of_rank = (BESIDE_IO,) if has_others.any() else ()
    asked = (
        (piece.gaps, piece.ops_count, (IO, CALLS, *of_rank)),
        (piece.behind, piece.ops_count, (IO,)),
        (piece.waits, piece.waits_count, (ALL_IO,)), (piece.spans, piece.spans_count, (ALL_IO,)),
    )  # fmt: skip
    sides = [Side(side, counts, unions) for pair, counts, unions in asked for side in pair]
    points, *found = lengths_of_lines(data, piece.lines,
        [Side(piece.points, piece.points_count, STATES), *sides])
    gaps, behind, in_waits, in_spans = ({union: ends[union] - begins[union] for union in begins}
        for begins, ends in zip(found[::2], found[1::2]))
    beside = None
    if of_rank:
        beside = np.where(np.repeat(has_others, piece.ops_count), gaps[BESIDE_IO], gaps[IO])
    return _Answer(gaps[IO], gaps[CALLS], behind[IO], beside, in_waits[ALL_IO], in_spans[ALL_IO],
        None, points)


def _of_one(data: StepData, piece: _Piece) -> _Answer:
    [line], [is_main] = piece.lines, piece.main.tolist()
    of_rank = BESIDE_IO if is_main else IO
    has_others = line.thread != EVERY_THREAD and is_main
    sums = [_Sums(piece.gaps, IO, CALLS, *([of_rank] if has_others else [])),
        _Sums(piece.behind, IO)]
    if is_main:
        sums += [_Sums(piece.waits, ALL_IO), _Sums(piece.spans, ALL_IO)]
    points = piece.points
    at_points: dict[int, list[np.ndarray]] = {IO: [], CALLS: []}
    if line.thread != EVERY_THREAD:
        at_points |= {ALL_IO: [], ALL_CALLS: []}
    time = (TIME,) if line.thread == EVERY_THREAD else (TIME, ALL_TIME)
    sides = [points, *(side for one in sums for side in one.sides), *map(np.sort, piece.spans)]
    known, done = [], 0
    for window in known_in_windows(data, line, sides, (*STATES, of_rank, *time)):
        for one in sums:
            one.take(window)
        last = int(np.searchsorted(points, window.at_ns[-1], "right"))
        at, done = np.searchsorted(window.at_ns, points[done:last]), last
        for union, rows in at_points.items():
            rows.append(window.of_union[union][at])
        known.append(window.changing(IO, ALL_IO, *time))
    (own, calls, *beside), (inside,), *io = (one.ns for one in sums)
    in_waits, in_spans = (of for (of,) in io) if io else (points[:0], points[:0])
    return _Answer(own, calls, inside, beside[0] if beside else None, in_waits, in_spans,
        KnownLengths.joined(known),
        {union: np.concatenate(rows) for union, rows in at_points.items()})


class _Sums:
    """How much of some unions lies between begins and ends. ns: by union, made window by window."""

    def __init__(self, pair: Pair, *unions: int):
        self.unions, self.ns = unions, [np.zeros(len(pair[0]), np.int64) for _ in unions]
        self._orders = [_order(side) for side in pair]
        self.sides = [side if order is None else side[order]
            for side, order in zip(pair, self._orders)]
        self._done = [0, 0]

    def take(self, window: KnownLengths) -> None:
        for at, (side, order, sign) in enumerate(zip(self.sides, self._orders, (-1, 1))):
            low, high = self._done[at], int(np.searchsorted(side, window.at_ns[-1], "right"))
            place = np.searchsorted(window.at_ns, side[low:high])
            rows = slice(low, high) if order is None else order[low:high]
            for union, ns in zip(self.unions, self.ns):
                ns[rows] += sign * window.of_union[union][place]
            self._done[at] = high


def _order(side: np.ndarray) -> np.ndarray | None:
    """In which timestamps rise; None: as they are."""
    if not (side[1:] < side[:-1]).any():
        return None
    return np.argsort(side, kind="stable").astype(np.int32)
