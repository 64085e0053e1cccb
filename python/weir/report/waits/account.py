# SPDX-License-Identifier: Apache-2.0
"""Who waits for whose I/O: the account of one step, by file and operation, by collective, by span
of time.

Words (docs/guide/waits.md): **waited**, rank-seconds in which a rank waited while the awaited one
was in I/O; **critical**, by how much the step would be shorter with I/O at no cost; **on the
critical path**, I/O of the ranks that decide when the step ends. The last two follow waits through
messages and collectives to the I/O that caused them. Each figure is distinguished by files and
operations, in proportion to the time of their calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weir.analysis.causes import Causes
from weir.analysis.intervals import Price
from weir.analysis.lines import (
    ALL_CALLS, ALL_IO, ALL_TIME, BESIDE_IO, CALLS, EVERY_THREAD, IO, TIME, Cells, KnownLengths,
    LineOf, call_rows, known_in_windows, lengths_of, rising
)  # fmt: skip
from weir.analysis.names import NameTable
from weir.analysis.remote import for_each
from weir.analysis.step import StepData
from weir.report.waits.awaited import (
    Waits,
    awaited_in,
    completions_of,
    met_in_waits,
    waiting_ns,
    waits_of,
)
from weir.report.waits.busy import Busy, busy_at
from weir.report.waits.completion import met_at_completion
from weir.report.waits.critical import Critical, Spent, by_location, critical_of
from weir.report.waits.file_calls import file_arrivals, routines_of_files
from weir.report.waits.instances import (
    Communicators,
    Instances,
    arrivals_of,
    communicators,
    instances_of,
    meeting_routines,
)
from weir.report.waits.locations import Locations
from weir.report.waits.operations import Operations, operations_of
from weir.report.waits.records import Records, threads_of

COSTS = ("waited_ns", "path_ns", "critical_ns")


@dataclass(frozen=True)
class Costs:
    """Rows by rank, file name (its number) and operation, those that cost something; times in ns.
    """

    location: np.ndarray
    name: np.ndarray
    op: np.ndarray
    waited_ns: np.ndarray
    path_ns: np.ndarray
    critical_ns: np.ndarray

    def total(self, figure: str) -> int:
        return round(float(getattr(self, figure).sum()))


@dataclass(frozen=True)
class Spans:
    """Stretches of time of ranks, in ns; figures of each come with the account."""

    location: np.ndarray
    begin_ns: np.ndarray
    end_ns: np.ndarray

    @staticmethod
    def none() -> Spans:
        return Spans(*(np.empty(0, np.int64),) * 3)


@dataclass(frozen=True)
class Account:
    """What came of a step. span_figures: by span, the union of its I/O, then COSTS."""

    locations: Locations
    comms: Communicators
    instances: Instances
    waits: Waits
    waited_ns: np.ndarray  # of each wait: while the awaited rank was in I/O
    critical: Critical
    operations: Operations
    own_ns: np.ndarray  # I/O in front of each operation, of the thread that calls MPI
    lines: list[LineOf]  # by strand
    caused: np.ndarray | None  # what causes_of() finds; None: not where a rank has no line
    costs: Costs
    span_figures: np.ndarray
    waiting_ns: int
    routines: dict[int, str]


@dataclass(frozen=True)
class Met:
    """What ranks do with one another, found in the records of MPI alone: these are not needed any
    more. waiting_ns: of all ranks in MPI's waits; routines: names of all by number."""

    locations: Locations
    comms: Communicators  # without columns of records
    instances: Instances
    waits: Waits
    operations: Operations
    waiting_ns: int
    routines: dict[int, str]


def meet(
    data: StepData, names: NameTable, records: Records, begins: Records, locations: Locations,
    lives: np.ndarray, routines: dict[int, str],
) -> Met:  # fmt: skip
    """records: of MPI and MPI-IO, of any member; begins: of MPI_Init; lives: start and end of each
    rank; routines: names of MPI's routines by number.

    cost: a pass over the I/O of ranks that call MPI-IO; memory: some 100 bytes for each record."""
    location = locations.of_member[records.member]
    program = np.r_[locations.program, -1].astype(np.int32)[location]
    own = communicators(records, program, names)
    del location, program

    def busy_of(asked: Sequence[tuple[int, np.ndarray]]) -> list[Busy]:
        return for_each(busy_at, data, names, [(locations.members[one], *timestamps)
            for one, *timestamps in asked])

    comms, of_files, files = file_arrivals(records, locations, own, busy_of)
    awaited = awaited_in(records)
    arrivals = met_at_completion(arrivals_of(records, own, locations),
        completions_of(records, awaited, own, locations), locations).joined(of_files)
    instances = instances_of(arrivals, comms.size, meeting_routines(routines), len(own.size))
    del arrivals, of_files  # the instances have them in their order
    met = met_in_waits(records, comms, instances)
    in_mpi = waiting_ns(records, instances, met)
    found = operations_of(
        records, awaited, comms, locations, instances, met, begins, files, lives, routines
    )
    waits = waits_of(records, awaited, comms, locations, instances, met)
    return Met(locations, comms.without_records(), instances.without_arrivals(), waits, found,
        in_mpi, routines | routines_of_files())


def account(data: StepData, names: NameTable, met: Met, lives: np.ndarray,
        spans: Spans | None = None) -> Account:
    """cost: a pass over the records of all ranks for their I/O, one more over that of ranks that
    others wait for or that are on the critical path; memory: for a few chunks of a rank's I/O per
    processor, and for times of waits (weir.analysis.lines)."""
    spans = spans or Spans.none()
    locations, found, waits = met.locations, met.operations, met.waits
    lines = lines_of(data, locations, found)
    of_spans = _Windows(spans.location, spans.begin_ns, spans.end_ns)
    spent, io, known, caused = _io_in(data, names, found, lines,
        _Windows(waits.awaited, waits.begin_ns, waits.until_ns), of_spans,
        causes_of(found, lives, spans))
    waited, critical = _once(waits, io[0]), critical_of(found, spent)
    costs, figures = _costs(data, names,
        _jobs(locations, found, lines, known, waits, waited, critical), of_spans)
    figures[:, 0] = io[1]
    return Account(
        locations, met.comms, met.instances, waits, waited, critical, found, spent.own, lines,
        caused, costs, figures, met.waiting_ns, met.routines,
    )  # fmt: skip


def causes_of(found: Operations, lives: np.ndarray, spans: Spans) -> Causes:
    """What ranks that were waited for did meanwhile: where ranks begin, where stretches of time do,
    where ranks end, where the stretches do, one after the other."""
    main_of = np.flatnonzero(found.main)
    strand = np.r_[main_of, main_of[spans.location]]
    asked = lives[:, 0], spans.begin_ns, lives[:, 1], spans.end_ns
    return Causes(found.strands, found.waiting(), (np.r_[strand, strand], np.concatenate(asked)))


class _Windows:
    """Stretches of time of ranks, and where those of each rank stand."""

    def __init__(self, location: np.ndarray, begins: np.ndarray, ends: np.ndarray):
        self.location, self.begins, self.ends = location, begins, ends
        self.rows_of = dict(by_location(location))

    def of(self, location: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, begins and ends of one rank."""
        rows = self.rows_of.get(location, np.empty(0, np.int64))
        return rows, self.begins[rows], self.ends[rows]


def lines_of(data: StepData, locations: Locations, found: Operations) -> list[LineOf]:
    """By strand. A thread that calls MPI beside the main one has a line of its own; that of a
    process with one thread is the whole process."""
    made = []
    for strand, location in enumerate(found.location_of_strand.tolist()):
        member, thread = int(locations.speaker[location]), int(found.thread[strand])
        others = tuple(one for one in locations.members[location] if one != member)
        is_alone = thread < 0 or bool((threads_of(data, member) == thread).all())
        calling = found.thread[(found.location_of_strand == location) & (found.thread != thread)]
        made.append(
            LineOf(
                (member, *others) if found.main[strand] else (member,),
                EVERY_THREAD if is_alone else thread, tuple(np.unique(calling).tolist()),
            )  # fmt: skip
        )
    return made


def _io_in(
    data: StepData, names: NameTable, found: Operations, lines: list[LineOf], waits: _Windows,
    spans: _Windows, causes: Causes,
) -> tuple[Spent, list[np.ndarray], list[KnownLengths], np.ndarray | None]:  # fmt: skip
    """What strands did in front of operations and in them; ranks' I/O in waits for them and in
    spans; what is known of lines where _job_costs() needs it; and what causes.run() finds, None
    where a rank has no line."""
    replay = found.replay
    gaps = replay.gaps()
    rows = np.searchsorted(replay.strand, np.arange(len(lines) + 1)).tolist()
    of_strands = [slice(*pair) for pair in zip(rows, rows[1:])]
    pieces = []
    for strand, (location, of) in enumerate(zip(found.location_of_strand.tolist(), of_strands)):
        pieces.append((lines[strand], bool(found.main[strand]), causes.points(strand),
            (gaps[0][of], gaps[1][of]), (found.until_ns[of], replay.end_ns[of]),
            waits.of(location)[1:], spans.of(location)[1:]))
    answers = for_each(_io_within, data, names, pieces)
    del pieces, gaps
    columns: list[list[Any]] = [[*column] for column in zip(*answers)] or [[] for _ in range(7)]
    del answers
    states = columns.pop()
    caused = None
    if (found.thread >= 0).all():
        caused = causes.run([[one[IO], one[CALLS], one.get(ALL_IO, one[IO]), one.get(ALL_CALLS,
            one[CALLS])] for one in states])
    del states
    io = [np.zeros(len(one.location), np.int64) for one in (waits, spans)]
    for location, its in zip(found.location_of_strand.tolist(), columns[4]):
        for one, into, ns in zip((waits, spans), io, its):
            into[one.of(location)[0]] = ns
    beside = [one if other is None else other for one, other in zip(columns[0], columns[3])]
    has_others = any(one is not None for one in columns[3])
    every = np.concatenate(beside) if has_others else np.empty(0, np.int64)
    del beside
    own, calls, within = map(_joined, columns[:3])
    return Spent(own, every if has_others else own, calls, within), io, columns[5], caused


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    """Takes the parts away."""
    made = np.concatenate([np.empty(0, np.int64), *parts])
    parts.clear()
    return made


Pair = tuple[np.ndarray, np.ndarray]  # begins and ends


def _io_within(
    data: StepData, names: NameTable, line: LineOf, is_main: bool, points: np.ndarray, gaps: Pair,
    behind: Pair, waits: Pair, spans: Pair,
) -> tuple[Any, ...]:  # fmt: skip
    """Of a strand I/O and calls in gaps, and I/O behind waits in operations, as Spent has them; I/O
    of other threads too, None where there are none; its rank's I/O in waits for it and in spans;
    what is known of its I/O; and by union what is known at the points."""
    of_rank = BESIDE_IO if is_main else IO
    has_others = line.thread != EVERY_THREAD and is_main
    sums = [_Sums(gaps, IO, CALLS, *([of_rank] if has_others else [])), _Sums(behind, IO)]
    if is_main:
        sums += [_Sums(waits, ALL_IO), _Sums(spans, ALL_IO)]
    at_points: dict[int, list[np.ndarray]] = {IO: [], CALLS: []}
    if line.thread != EVERY_THREAD:
        at_points |= {ALL_IO: [], ALL_CALLS: []}
    time = (TIME,) if line.thread == EVERY_THREAD else (TIME, ALL_TIME)
    sides = [points, *(side for one in sums for side in one.sides), *map(np.sort, spans)]
    known, done = [], 0
    for window in known_in_windows(data, line, sides, (IO, CALLS, ALL_IO, ALL_CALLS, of_rank,
            *time)):  # fmt: skip
        for one in sums:
            one.take(window)
        last = int(np.searchsorted(points, window.at_ns[-1], "right"))
        at, done = np.searchsorted(window.at_ns, points[done:last]), last
        for union, rows in at_points.items():
            rows.append(window.of_union[union][at])
        known.append(window.changing(IO, ALL_IO, *time))
    (own, calls, *beside), (inside,), *io = (one.ns for one in sums)
    states = {union: np.concatenate(rows) for union, rows in at_points.items()}
    return (own, calls, inside, beside[0] if beside else None, [of for (of,) in io],
        KnownLengths.joined(known), states)


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


def _once(waits: Waits, waited: np.ndarray) -> np.ndarray:
    """Of a call that waits for several ranks, the one that was longest in I/O: the call cannot have
    waited for each of them."""
    seen = np.flatnonzero(waited > 0)
    order = seen[np.lexsort((waited[seen], waits.group[seen]))]
    is_last = np.r_[np.diff(waits.group[order]) != 0, True][: len(order)]
    kept = np.zeros(len(waited), np.int64)
    kept[order[is_last]] = waited[order[is_last]]
    return kept


@dataclass(frozen=True)
class _Job:
    """What a second of the I/O of a line costs, for some of COSTS (their places). unions: of what
    is known, its I/O and the time of its calls."""

    location: int
    line: LineOf
    known: KnownLengths
    unions: tuple[int, int]
    costs: tuple[int, ...]
    prices: tuple[Price, ...]


def _jobs(
    locations: Locations, found: Operations, lines: list[LineOf], known: list[KnownLengths],
    waits: Waits, waited: np.ndarray, critical: Critical,
) -> list[_Job]:  # fmt: skip
    """Of ranks that were waited for, whichever of their threads was in I/O; and of strands on the
    critical path."""
    seen, path, made = np.flatnonzero(waited > 0), critical.path, []
    of_waits = {one: seen[rows] for one, rows in by_location(waits.awaited[seen])}
    of_path = dict(by_location(path.strand))
    for strand, location in enumerate(found.location_of_strand.tolist()):
        line, prices, costs = lines[strand], [], []
        rows = of_waits.get(location, seen[:0]) if found.main[strand] else seen[:0]
        if len(rows):
            price = Price.added(waits.begin_ns[rows], waits.until_ns[rows])
            if line.thread == EVERY_THREAD:
                prices, costs = [price], [0]
            else:
                made.append(_Job(location, LineOf(line.members), known[strand],
                    (ALL_IO, ALL_TIME), (0,), (price,)))
        at = of_path.get(strand, seen[:0])
        if len(at):
            at = at[np.argsort(path.begin_ns[at], kind="stable")]
            begins, ends, price = path.begin_ns[at], path.end_ns[at], path.price[at]
            prices += [
                Price.of_windows(begins, ends, np.ones(len(at))),
                Price.of_windows(begins, ends, price),
            ]
            costs += [1, 2]
        if prices:
            made.append(_Job(location, line, known[strand], (IO, TIME), tuple(costs),
                tuple(prices)))
    return made


def _costs(
    data: StepData, names: NameTable, jobs: list[_Job], spans: _Windows
) -> tuple[Costs, np.ndarray]:
    """What I/O costs by rank, file and operation; and by span, behind an empty column."""
    figures = np.zeros((len(spans.location), 1 + len(COSTS)))
    pieces = [(one, *spans.of(one.location)[1:]) for one in jobs]
    sums: dict[tuple[int, int, int], np.ndarray] = {}
    for job, (name, op, of_calls, of_spans) in zip(jobs, for_each(_job_costs, data, names, pieces)):
        places = list(job.costs)
        at = spans.of(job.location)[0]
        figures[at[:, None], 1 + np.array(places)] += of_spans
        for one, which, of in zip(name.tolist(), op.tolist(), of_calls):
            key = (job.location, one, which)
            sums.setdefault(key, np.zeros(len(COSTS)))[places] += of
    keys = sorted(sums)
    columns = [np.array(column) for column in zip(*keys)] if keys else [np.empty(0, int)] * 3
    values = np.array([sums[key] for key in keys]).reshape(-1, len(COSTS)).T
    kinds = (np.int64, np.int32, np.uint8)
    return Costs(*(one.astype(kind) for one, kind in zip(columns, kinds)), *values), figures


def _job_costs(
    data: StepData, names: NameTable, job: _Job, begins: np.ndarray, ends: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Names, operations and their costs, as far as they have some; and the costs of spans."""
    edges = rising(*(one.edges for one in job.prices))
    at = rising(edges, begins, ends)
    found = job.known.at(at, *job.unions)
    io, time = lengths_of(data, job.line, at, IO, TIME) if found is None else found
    busy = Busy(at, io, at)
    costs = [price.cost(busy) for price in job.prices]
    of_spans = np.stack([cost.until(ends) - cost.until(begins) for cost in costs], 1)
    sums = np.stack([cost.until(edges) for cost in costs], 1)
    rows = call_rows(data, names, job.line)
    calls_ns = np.diff(time[np.searchsorted(at, edges)])[:, None]
    lengths = np.diff(edges)[:, None]
    rates = np.divide(np.diff(sums, axis=0), calls_ns, out=np.zeros((len(lengths), len(costs))),
        where=calls_ns > 0)
    whole = np.cumsum(np.r_[np.zeros((1, len(costs))), rates * lengths], axis=0)
    of_calls = Cells(data, job.line, rows, edges).shares(whole)
    kept = of_calls.any(axis=1)
    return rows.name[kept], rows.op[kept], of_calls[kept], of_spans
