# SPDX-License-Identifier: Apache-2.0
"""Phases: stretches of code between two marks, over ranks, and how long ranks waited for one
another at their ends.

Marks come from the program (weir_phase_begin, weir_phase_end), from rules
(weir.report.waits.phase_rules) or, where there are neither, from the barriers of MPI_COMM_WORLD.
The n-th time that a rank is in a phase belongs to the n-th time of every other rank of its program;
for phases that begin at files see phase_times.py.
The table is that of the OLAM study: time of a phase per rank, and its sync time, which is the last
arrival at its end less the first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from weir.analysis.columns import distinct, order_of, starts
from weir.analysis.names import NO_NAME, NameTable
from weir.analysis.step import StepData
from weir.report.waits.locations import Locations
from weir.report.waits.phase_rules import PhaseRule, ruled
from weir.report.waits.phase_times import covered, times_by_file
from weir.report.waits.records import Records, silent_ops

PREFIX = "phase:"
MARKS = ("phase_begin", "phase_end")
BARRIER = "MPI_Barrier"
_WORLD = "mpi:world:"


@dataclass(frozen=True)
class Unpaired:
    """Marks of one phase without their partner, over all ranks: begins that end where the next
    begins, or with the rank, and ends that count for nothing."""

    name: str
    begins: int
    ends: int


@dataclass(frozen=True)
class PhaseSpans:
    """Arrays by stretch: the phase (index in names), rank, which time of the step it is in that
    phase (from 0), begin and end in ns."""

    names: tuple[str, ...]
    phase: np.ndarray
    location: np.ndarray
    nth: np.ndarray
    begin_ns: np.ndarray
    end_ns: np.ndarray
    source: str  # marks, rules, barriers
    unpaired: tuple[Unpaired, ...] = ()

    def __len__(self) -> int:
        return len(self.phase)

    def of_ranks(self, number: np.ndarray) -> PhaseSpans:
        """With new numbers of ranks, by their old ones; stretches of those with -1 are left out."""
        kept = number[self.location] >= 0
        columns = {name: getattr(self, name)[kept] for name in ("phase", "nth", "begin_ns",
            "end_ns")}
        return replace(self, location=number[self.location][kept], **columns)


@dataclass(frozen=True)
class PhaseTotals:
    """One phase. times: how often a rank was in it, at most. least_ns to most_ns: over the ranks
    that were in it, each rank's times added up. sync_ns: last end less first end, wall_ns: last end
    less first begin, added up over the times. io_ns to critical_ns: of all ranks."""

    name: str
    times: int
    ranks: int
    least_ns: int
    mean_ns: int
    most_ns: int
    sync_ns: int
    wall_ns: int
    io_ns: int
    waited_ns: int
    path_ns: int
    critical_ns: int


def phases_of(
    data: StepData, names: NameTable, records: Records, locations: Locations, lives: np.ndarray,
    routines: dict[int, str], rules: tuple[PhaseRule, ...] = ()
) -> PhaseSpans:
    """records: of MPI and marks; lives: of lives_of(). Rules come before marks of the program,
    these before barriers."""
    if rules:
        barriers = barriers_left(records, locations, names, routines)
        *columns, file = ruled(data, names, rules, locations, lives, barriers, records)
        return _spans(*columns, "rules", locations.program, file)
    marks = _in_order(records.of(*MARKS), locations)
    marked = _marked(marks, names, lives)
    if len(marked[1]):
        spans = _spans(*marked, "marks", locations.program)
    else:
        spans = _spans(*_between(records, locations, names, routines, lives), "barriers",
            locations.program)
    return replace(spans, unpaired=_unpaired(marks, names))


class _Marks(NamedTuple):
    """Marks by rank, name and time. follows: the next one is of the same rank and name."""

    location: np.ndarray
    name: np.ndarray
    start: np.ndarray
    is_begin: np.ndarray
    follows: np.ndarray


def _in_order(records: Records, locations: Locations) -> _Marks:
    location = locations.of_member[records.member]
    kept = (location >= 0) & (records.name != NO_NAME)
    records, location = records.where(kept), location[kept]
    is_begin = records.op == silent_ops().get(MARKS[0], -1)
    # an end before a begin at the same timestamp
    order = order_of(location, records.name, records.start, is_begin)
    location, name, start, is_begin = (column[order] for column in (location, records.name,
        records.start, is_begin))
    follows = (location[1:] == location[:-1]) & (name[1:] == name[:-1])
    return _Marks(location, name, start, is_begin,
        np.r_[follows, np.zeros(min(1, len(location)), bool)])


def _marked(marks: _Marks, names: NameTable, lives: np.ndarray):  # type: ignore[no-untyped-def]
    """Begins and the ends that follow them, of one name in one rank. A mark without its partner
    ends where the next begins, or with the rank."""
    end = np.where(marks.follows, np.r_[marks.start[1:], 0][: len(marks.start)],
        lives[marks.location, 1])
    at = np.flatnonzero(marks.is_begin)
    numbers, phase = np.unique(marks.name[at], return_inverse=True)
    texts = tuple(names[number].removeprefix(PREFIX) for number in numbers.tolist())
    return texts, phase, marks.location[at], marks.start[at], end[at]


def _unpaired(marks: _Marks, names: NameTable) -> tuple[Unpaired, ...]:
    is_pair = marks.is_begin[:-1] & marks.follows[:-1] & ~marks.is_begin[1:]
    is_alone = ~(np.r_[is_pair, False] | np.r_[False, is_pair])[: len(marks.name)]
    name, is_begin = marks.name[is_alone], marks.is_begin[is_alone]
    return tuple(
        Unpaired(names[number].removeprefix(PREFIX), int((is_begin & (name == number)).sum()),
            int((~is_begin & (name == number)).sum()))
        for number in np.unique(name).tolist()
    )


def barriers_left(records: Records, locations: Locations, names: NameTable,
        routines: dict[int, str]) -> Records:
    """Barriers of MPI_COMM_WORLD, by rank and time."""
    numbers = [number for number in distinct(records.name[records.name != NO_NAME]).tolist()
        if names[number].startswith(_WORLD)]
    barriers = [value for value, name in routines.items() if name == BARRIER]
    records = records.of("MPI_collective")
    records = records.where(np.isin(records.name, numbers) & np.isin(records.size >> 32, barriers)
        & (locations.of_member[records.member] >= 0))
    return records.where(order_of(locations.of_member[records.member], records.start))


def _between(records: Records, locations: Locations, names: NameTable, routines: dict[int, str],
        lives: np.ndarray):  # type: ignore[no-untyped-def]
    """From one barrier to the next, the first from the rank's start, the last to its end: the wait
    at the barrier is in none of them."""
    barriers = barriers_left(records, locations, names, routines)
    nothing = np.empty(0, np.int64)
    if not len(barriers):
        return (), nothing, nothing, nothing, nothing
    location = locations.of_member[barriers.member]
    everyone = distinct(location)
    order = order_of(np.r_[location, everyone], np.r_[barriers.end, lives[everyone, 0]])
    who, begin = np.r_[location, everyone][order], np.r_[barriers.end, lives[everyone, 0]][order]
    order = order_of(np.r_[location, everyone], np.r_[barriers.start, lives[everyone, 1]])
    end = np.r_[barriers.start, lives[everyone, 1]][order]
    first = np.flatnonzero(np.r_[True, who[1:] != who[:-1]])
    counts = np.diff(np.r_[first, len(who)])
    phase = np.arange(len(who)) - np.repeat(first, counts)
    # the end of all
    phase = np.where(phase == np.repeat(counts, counts) - 1, counts.max() - 1, phase)
    most = int(counts.max())
    texts = ("to barrier 1", *(f"barrier {n} to {n + 1}" for n in range(1, most - 1)),
        "after the last barrier")
    return texts, phase, who, begin, end


def _spans(texts: tuple[str, ...], phase: np.ndarray, location: np.ndarray, begin: np.ndarray,
        end: np.ndarray, source: str, programs: np.ndarray,
        file: np.ndarray | None = None) -> PhaseSpans:
    """In the order of phase, rank and time; phases in the order in which they were first entered.
    programs: by rank; file: of each stretch, -1 none."""
    begin, end = np.asarray(begin, np.int64), np.asarray(end, np.int64)
    end = np.maximum(begin, end)
    if len(phase):
        first = np.full(len(texts), np.iinfo(np.int64).max)
        np.minimum.at(first, phase, begin)
        by_begin = np.argsort(first, kind="stable")
        place = np.empty(len(texts), np.int64)
        place[by_begin] = np.arange(len(texts))
        texts, phase = tuple(texts[at] for at in by_begin.tolist()), place[phase]
    order = order_of(phase, location, begin)
    phase, location, begin, end = (column[order] for column in (phase, location, begin, end))
    is_first = np.r_[True, (np.diff(phase) != 0) | (np.diff(location) != 0)] if len(
        phase) else np.empty(0, bool)
    at = np.flatnonzero(is_first)
    nth = np.arange(len(phase)) - np.repeat(at, np.diff(np.r_[at, len(phase)]))
    if file is not None:
        of = programs[location]
        nth = times_by_file(phase, of, location, file[order], begin, end, nth)
    return PhaseSpans(texts, phase, location, _after_others(phase, programs[location], nth), begin,
        end, source)


def _after_others(phase: np.ndarray, program: np.ndarray, nth: np.ndarray) -> np.ndarray:
    """Times of one parallel program are none of another one's: they count on from those of the
    programs before it."""
    if not len(phase):
        return nth
    count = int(program.max()) + 1
    times = np.zeros((int(phase.max()) + 1, count), np.int64)
    np.maximum.at(times, (phase, program), nth + 1)
    return nth + (np.cumsum(times, axis=1) - times)[phase, program]


def phase_totals(spans: PhaseSpans, figures: np.ndarray) -> list[PhaseTotals]:
    """figures: by stretch I/O, waited, path, critical in ns (weir.report.waits.account)."""
    if not len(spans):
        return []
    of_location = starts(spans.phase, spans.location)  # they are in this order
    by_location = np.add.reduceat(spans.end_ns - spans.begin_ns, of_location)
    at = starts(spans.phase[of_location])
    locations = np.diff(np.r_[at, len(of_location)])
    order = order_of(spans.phase, spans.nth)
    phase, begin, end = spans.phase[order], spans.begin_ns[order], spans.end_ns[order]
    of_time = starts(phase, spans.nth[order])
    times = starts(phase[of_time])
    last = np.maximum.reduceat(end, of_time)
    columns = (
        spans.phase[of_location[at]], np.diff(np.r_[times, len(of_time)]), locations,
        np.minimum.reduceat(by_location, at),
        np.add.reduceat(by_location, at) // locations, np.maximum.reduceat(by_location, at),
        np.add.reduceat(last - np.minimum.reduceat(end, of_time), times),
        covered(phase[of_time], np.minimum.reduceat(begin, of_time), last),
        *np.rint(np.add.reduceat(figures, of_location[at])).astype(np.int64).T,
    )  # fmt: skip
    return [PhaseTotals(spans.names[phase], *rest) for phase, *rest in zip(*(column.tolist()
        for column in columns))]
