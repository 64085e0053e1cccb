# SPDX-License-Identifier: Apache-2.0
"""A step as operations of threads that call MPI, and what each waits for: what a replay needs.

A strand is a thread of a rank that calls MPI. Its operations are MPI_Init, the calls of MPI that
are recorded, the two meetings in a collective call of MPI-IO (before its I/O and behind it), where
it begins and ends, and points at which messages leave that have no record of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from weir.analysis.columns import distinct, order_of
from weir.analysis.replay import NOBODY, Replay
from weir.report.waits.awaited import COLLECTIVE, Awaited
from weir.report.waits.file_calls import FileCalls
from weir.report.waits.instances import Communicators, Instances
from weir.report.waits.locations import Locations
from weir.report.waits.messages import Calls, MessageWaits, message_waits
from weir.report.waits.records import Records, silent_ops
from weir.report.waits.rooted import rooted_waits
from weir.trace.ops import NESTED

JOIN_NS = 5_000_000  # in which a thread that was waited for is behind another one's end
TOP = (
    "MPI_collective", "MPI_start_collective", "MPI_wait", "MPI_receive", "MPI_probe", "MPI_send",
)  # fmt: skip


@dataclass(frozen=True)
class Operations:
    """main: whether each strand is its rank's main one; thread: of each strand (-1: no record).
    awaited: by operation the one whose start it waited for longest (NOBODY: none), until_ns: until
    when. unknown_ns: by routine, time in calls of which it is not known for whom they wait."""

    replay: Replay
    main: np.ndarray
    thread: np.ndarray
    location_of_strand: np.ndarray
    awaited: np.ndarray
    until_ns: np.ndarray
    unknown_ns: dict[int, int]

    @property
    def strands(self) -> int:
        return len(self.thread)

    def location_of(self, ops: np.ndarray) -> np.ndarray:
        """The rank of each operation."""
        return self.location_of_strand[self.replay.strand[ops]]

    def waiting(self) -> tuple[np.ndarray, ...]:
        """Waits of strands, apart and rising within each: strand, awaited strand, begin, end."""
        replay = self.replay
        at = np.flatnonzero(self.until_ns > replay.start_ns)
        awaited = replay.strand[self.awaited[at]]
        at = at[awaited != replay.strand[at]]
        return (
            replay.strand[at], replay.strand[self.awaited[at]], replay.start_ns[at],
            self.until_ns[at],
        )  # fmt: skip


@dataclass
class _Rows:
    """Operations as they are found, and what they wait for, by their rows here."""

    strand: list[np.ndarray] = field(default_factory=list)
    start: list[np.ndarray] = field(default_factory=list)
    end: list[np.ndarray] = field(default_factory=list)
    routine: list[np.ndarray] = field(default_factory=list)
    joins: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    waits: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    known: list[np.ndarray] = field(default_factory=list)  # whose partners are known
    firsts: list[np.ndarray] = field(default_factory=list)  # of their strands, and the last ones
    lasts: list[np.ndarray] = field(default_factory=list)
    count: int = 0

    def add(self, strand: np.ndarray, start: np.ndarray, end: np.ndarray,
            routine: np.ndarray | int = 0) -> np.ndarray:
        """The rows of the new operations."""
        self.strand.append(strand.astype(np.int32))
        self.start.append(start)
        self.end.append(end)
        self.routine.append(np.broadcast_to(np.asarray(routine, np.int32), strand.shape))
        rows = np.arange(self.count, self.count + len(strand), dtype=np.int32)
        self.count += len(strand)
        return rows

    def meet(self, rows: np.ndarray, instance: np.ndarray) -> None:
        """They come to collectives and wait for all others."""
        self.joins.append((rows, instance))
        self.waits.append((rows, ~instance))

    def columns(self) -> tuple[np.ndarray, ...]:
        for one in (self.strand, self.start, self.end, self.routine):
            if len(one) != 1:  # one is kept, and no part twice
                one[:] = [np.concatenate([np.empty(0, np.int32), *one])]
        return self.strand[0], self.start[0], self.end[0], self.routine[0]


@dataclass(frozen=True)
class _Strands:
    """Arrays by strand, those of a rank together, its main one first."""

    location: np.ndarray
    thread: np.ndarray
    main: np.ndarray
    main_of: np.ndarray  # by location

    @staticmethod
    def of(locations: Locations, location: np.ndarray, thread: np.ndarray,
            begins: Records) -> _Strands:
        """The main thread of a rank is the one that called MPI_Init, else the one with most calls.
        """
        count = len(locations)
        pairs, calls = np.unique(location.astype(np.int64) << 32 | thread, return_counts=True)
        owner, thread = pairs >> 32, pairs & 0xFFFFFFFF
        began = distinct(locations.of_member[begins.member] << 32 | begins.thread)
        weight = np.where(np.isin(pairs, began), np.iinfo(np.int64).max, calls)
        silent = np.setdiff1d(np.arange(count), owner)
        owner, thread = np.r_[owner, silent], np.r_[thread, np.full(len(silent), -1)]
        order = np.lexsort((-np.r_[weight, np.zeros(len(silent), np.int64)], owner))
        owner, thread = owner[order], thread[order]
        main = np.r_[True, np.diff(owner) != 0][: len(owner)]
        return _Strands(owner, thread, main, np.flatnonzero(main))

    def find(self, location: np.ndarray, thread: np.ndarray) -> np.ndarray:
        """The strand of each rank and thread; before: there is one."""
        keys = self.location << 32 | self.thread & 0xFFFFFFFF
        order = np.argsort(keys)
        at = np.searchsorted(keys[order], location.astype(np.int64) << 32 | thread)
        return order.astype(np.int32)[at]


def operations_of(
    records: Records, awaited: Awaited, comms: Communicators, locations: Locations,
    instances: Instances, met: np.ndarray, begins: Records, files: FileCalls, lives: np.ndarray,
    routines: dict[int, str],
) -> Operations:  # fmt: skip
    """begins: records of MPI_Init; lives: start and end of each rank; met: by instance, whether its
    meeting is where it is waited for (completion.py)."""
    location = locations.of_member.astype(np.int32)[records.member]
    ops = silent_ops()
    is_top = np.isin(records.op, [ops[name] for name in TOP if name in ops]) & (location >= 0)
    is_top &= (records.flags & NESTED) == 0
    top = np.flatnonzero(is_top).astype(np.int32)
    begins = begins.where(locations.of_member[begins.member] >= 0)
    thread = np.r_[records.thread[top], begins.thread]
    every = np.r_[location[top], locations.of_member[begins.member]]
    strands = _Strands.of(locations, every, thread, begins)
    rows = _Rows()
    of_record = np.full(len(records), -1, np.int32)
    at = strands.find(location[top], thread[: len(top)])
    end = _ends(records, comms, instances)[top]
    of_record[top] = rows.add(at, records.start[top], end, records.size[top] >> 32)
    del at, end, thread, every
    of_record = np.where(awaited.owner >= 0, of_record[awaited.owner], of_record)
    _add_collectives(rows, records, awaited, comms, instances, met, of_record, location, routines)
    firsts = len(instances) + np.arange(3) * (len(instances) + len(locations))
    _add_files(rows, instances, files, strands, firsts[0])
    _add_inits(rows, begins, locations, strands, firsts[1])
    calls = Calls(*rows.columns()[:3], strands.main_of, _died(rows, strands, lives),
        np.bincount(strands.location, minlength=len(locations)) > 1, rows.count)
    _add_messages(rows, message_waits(records, awaited, locations, of_record, calls))
    del of_record, location, calls
    waits = records.op[top] != ops.get("MPI_start_collective", -1)
    waits &= ~comms.is_alone[top]
    unknown_ns = _unknown(rows, np.flatnonzero(waits).astype(np.int32))
    del waits, top, is_top
    _add_ends(rows, strands, locations, lives, firsts[2])
    return _ordered(rows, strands, int(firsts[2]) + len(locations) + 1, unknown_ns)


def _unknown(rows: _Rows, calls: np.ndarray) -> dict[int, int]:
    """By routine the time in calls without any partner that is known."""
    _, start, end, routine = rows.columns()
    is_known = np.zeros(rows.count, bool)
    for known in rows.known:
        is_known[known] = True
    calls = calls[~is_known[calls]]
    found: dict[int, int] = {}
    for one in distinct(routine[calls]).tolist():
        its = calls[routine[calls] == one]
        found[one] = int((end[its] - start[its]).sum())
    return found


def _ends(records: Records, comms: Communicators, instances: Instances) -> np.ndarray:
    """When calls return: no meeting before all have come, whatever clocks of other nodes say."""
    end = records.end
    is_collective = records.op == silent_ops().get("MPI_collective", -1)
    at = np.flatnonzero(is_collective & (comms.of_record >= 0) & (records.offset >= 0))
    of = instances.find(comms.of_record[at], records.offset[at])
    at, of = at[of >= 0], of[of >= 0]
    met = instances.is_meeting[of] & (end[at] < instances.last_ns[of])
    if met.any():
        end = end.copy()
        end[at[met]] = instances.last_ns[of[met]]
    return end


def _add_collectives(
    rows: _Rows, records: Records, awaited: Awaited, comms: Communicators, instances: Instances,
    met: np.ndarray, of_record: np.ndarray, location: np.ndarray, routines: dict[int, str],
) -> None:  # fmt: skip
    ops = silent_ops()
    has_sequence = (comms.of_record >= 0) & (records.offset >= 0) & (of_record >= 0)
    is_begun = records.op == ops.get("MPI_start_collective", -1)
    is_blocking = records.op == ops.get("MPI_collective", -1)
    is_awaited = awaited.kind == COLLECTIVE
    at = np.flatnonzero((is_begun | is_blocking | is_awaited) & has_sequence)
    of = instances.find(comms.of_record[at], records.offset[at]).astype(np.int32)
    at, of = at[of >= 0], of[of >= 0]
    rows.known.append(of_record[at])
    comes = np.where(is_awaited[at], met[of], ~is_begun[at] | ~met[of])
    rows.joins.append((of_record[at[comes]], of[comes]))
    waiting = is_awaited[at]
    rows.waits.append((of_record[at[waiting]], ~of[waiting]))
    blocking = is_blocking[at]
    at, of = at[blocking], of[blocking]
    rows.waits.append(rooted_waits(records, instances, at, of, of_record[at], location[at],
        routines))


def _add_files(rows: _Rows, instances: Instances, files: FileCalls, strands: _Strands,
        first: int) -> None:
    """Collective calls of MPI-IO: all come, then each does its I/O, then they wait for the last."""
    of = instances.find(files.comm, files.sequence)
    files, of = files.where(of >= 0), of[of >= 0]
    strand = strands.main_of[files.location]
    entry = rows.add(strand, files.called_ns, files.entered_ns)
    rows.joins.append((entry, first + of))
    has_io = files.arrival_ns > files.called_ns
    rows.waits.append((entry[has_io], ~(first + of[has_io])))
    rows.meet(rows.add(strand, files.arrival_ns, files.end_ns, files.routine), of)


def _add_inits(rows: _Rows, begins: Records, locations: Locations, strands: _Strands,
        first: int) -> None:
    location = locations.of_member[begins.member]
    _, at = np.unique(location, return_index=True)
    begins, location = begins.where(at), location[at]
    strand = strands.find(location, begins.thread.astype(np.int64))
    rows.meet(rows.add(strand, begins.start, begins.end), first + locations.program[location])


def _add_messages(rows: _Rows, found: MessageWaits) -> None:
    marks = rows.add(found.mark_strand, found.mark_ns, found.mark_ns)
    awaited = np.where(found.awaited >= 0, found.awaited, marks[0] - 1 - found.awaited
        if len(marks) else 0)
    rows.waits.append((found.row, awaited))
    rows.known.append(found.known)


def _died(rows: _Rows, strands: _Strands, lives: np.ndarray) -> np.ndarray:
    """When each rank was seen last."""
    strand, _, end, _ = rows.columns()
    died = lives[:, 1].copy()
    np.maximum.at(died, strands.location[strand], end)
    return died


def _add_ends(rows: _Rows, strands: _Strands, locations: Locations, lives: np.ndarray,
        first: int) -> None:
    """Where strands begin and end. A thread begins where its rank's main one is then, and is known
    until its last call. A program that begins when another has ended follows it."""
    strand, start, end, _ = rows.columns()
    count = len(strands.location)
    begins, ends = np.full(count, np.iinfo(np.int64).max), np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(begins, strand, start)
    np.maximum.at(ends, strand, end)
    life = lives[strands.location]
    main, others = np.flatnonzero(strands.main), np.flatnonzero(~strands.main)
    born = np.minimum(life[main, 0], begins[main])
    died = np.maximum(np.maximum(life[main, 1], ends[main]), born)
    first_row = rows.add(main, born, born)
    last_row = rows.add(main, died, died)
    rows.firsts.append(first_row)
    rows.lasts.append(last_row)
    _add_joins(rows, strands, (strand, start, end), begins, ends)
    from_main = rows.add(strands.main_of[strands.location[others]], begins[others], begins[others])
    rows.firsts.append(rows.add(others, begins[others], begins[others]))
    rows.waits.append((rows.firsts[-1], from_main))
    program = locations.program
    programs = int(program.max(initial=-1)) + 1
    born_of, died_of = np.full(programs, np.iinfo(np.int64).max), np.full(programs,
        np.iinfo(np.int64).min)
    np.minimum.at(born_of, program, born)
    np.maximum.at(died_of, program, died)
    rows.joins.append((last_row, first + program))
    by_end = np.argsort(died_of, kind="stable")
    before = np.searchsorted(died_of[by_end], born_of, "right") - 1
    follows = before[program] >= 0
    rows.waits.append((first_row[follows], ~(first + by_end[before[program[follows]]])))


def _add_joins(rows: _Rows, strands: _Strands, ops: tuple[np.ndarray, ...], begins: np.ndarray,
        ends: np.ndarray) -> None:
    """A thread that calls MPI and ends directly before the next call of its rank's main one, which
    was in none meanwhile: the main one waited for it. begins, ends: of strands."""
    if strands.main.all():
        return
    strand, start, end = ops
    order = order_of(strand, start)
    first = np.searchsorted(strand[order], np.arange(len(strands.location) + 1))
    for other in np.flatnonzero(~strands.main & (ends >= begins)).tolist():
        main = int(strands.main_of[strands.location[other]])
        of_main = order[first[main] : first[main + 1]]
        next_one = int(np.searchsorted(start[of_main], ends[other]))
        if next_one == len(of_main) or start[of_main[next_one]] - ends[other] > JOIN_NS:
            continue
        idle = max(int(end[of_main[:next_one]].max(initial=begins[other])), int(begins[other]))
        if idle < ends[other]:
            left = rows.add(np.array([other]), ends[[other]], ends[[other]])
            rows.lasts.append(left)
            joined = rows.add(np.array([main]), np.array([idle]), ends[[other]])
            rows.waits.append((joined, left))


def _ordered(rows: _Rows, strands: _Strands, instances: int,
        unknown_ns: dict[int, int]) -> Operations:
    """Takes the rows away."""
    strand, start, end, _ = rows.columns()
    place = np.zeros(len(strand), np.int8)
    place[np.concatenate(rows.firsts)], place[np.concatenate(rows.lasts)] = -1, 1
    order = order_of(strand, start, place, end).astype(np.int32)
    for one in (rows.strand, rows.start, rows.end, rows.routine, rows.known):
        one.clear()
    strand, start, end = strand[order], start[order], end[order]
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    del order
    replay = Replay(strand, start, end, _pairs(rows.joins, place), _pairs(rows.waits, place, True),
        instances)
    del strand, start, end, place
    awaited = replay.awaited()
    until = replay.start_ns.copy()
    at = np.flatnonzero(awaited != NOBODY)
    until[at] = np.clip(replay.start_ns[awaited[at]], until[at], replay.end_ns[at])
    return Operations(replay, strands.main, strands.thread, strands.location, awaited, until,
        unknown_ns)


def _pairs(parts: list[tuple[np.ndarray, np.ndarray]], place: np.ndarray,
        are_ops: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Operations and their collectives, or (are_ops) what they wait for, by the operations' places.
    Takes the parts away."""
    nothing = np.empty(0, np.int32)
    ops, others = (np.concatenate([nothing, *side], dtype=np.int32, casting="same_kind")
        for side in zip(*parts))
    parts.clear()
    if are_ops:
        at = np.flatnonzero(others >= 0)
        others[at] = place[others[at]]
    return place[ops], others
