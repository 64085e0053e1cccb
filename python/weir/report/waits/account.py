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
from functools import partial

import numpy as np

from weir.analysis.ahead import begin
from weir.analysis.causes import Causes
from weir.analysis.intervals import Price
from weir.analysis.lines import (
    ALL_IO, ALL_TIME, EVERY_THREAD, IO, TIME, Cells, KnownLengths, LineOf, call_rows, lengths_of,
    rising,
)  # fmt: skip
from weir.analysis.memory import return_memory
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
from weir.report.waits.critical import Critical, by_location, critical_of
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
from weir.report.waits.records import Records
from weir.report.waits.spent import Windows, lines_of, seen_in

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
    [causes] = begin(partial(causes_of, found, lives, spans))
    lines, count = lines_of(data, locations, found), len(locations)
    of_spans = Windows(spans.location, spans.begin_ns, spans.end_ns, count)
    of_waits = Windows(waits.awaited, waits.begin_ns, waits.until_ns, count)
    made = causes.answer()
    return_memory()
    seen = seen_in(data, names, found, lines, of_waits, of_spans, made)
    del causes, made
    waited, critical = _once(waits, seen.in_waits), critical_of(found, seen.spent)
    costs, figures = _costs(data, names,
        _jobs(locations, found, lines, seen.known, waits, waited, critical), of_spans)
    figures[:, 0] = seen.in_spans
    return Account(
        locations, met.comms, met.instances, waits, waited, critical, found, seen.spent.own, lines,
        None if seen.caused is None else seen.caused.answer(), costs, figures, met.waiting_ns,
        met.routines,
    )  # fmt: skip


def causes_of(found: Operations, lives: np.ndarray, spans: Spans) -> Causes:
    """What ranks that were waited for did meanwhile: where ranks begin, where stretches of time do,
    where ranks end, where the stretches do, one after the other."""
    main_of = np.flatnonzero(found.main)
    strand = np.r_[main_of, main_of[spans.location]]
    asked = lives[:, 0], spans.begin_ns, lives[:, 1], spans.end_ns
    return Causes(found.strands, found.waiting(), (np.r_[strand, strand], np.concatenate(asked)))


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
    known: KnownLengths | None
    unions: tuple[int, int]
    costs: tuple[int, ...]
    prices: tuple[Price, ...]


def _jobs(
    locations: Locations, found: Operations, lines: list[LineOf], known: list[KnownLengths | None],
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
    data: StepData, names: NameTable, jobs: list[_Job], spans: Windows
) -> tuple[Costs, np.ndarray]:
    """What I/O costs by rank, file and operation; and by span, behind an empty column."""
    figures = np.zeros((len(spans.location), 1 + len(COSTS)))
    pieces = [(one, *spans.of(one.location, one.location + 1)[1:]) for one in jobs]
    sums: dict[tuple[int, int, int], np.ndarray] = {}
    for job, (name, op, of_calls, of_spans) in zip(jobs, for_each(_job_costs, data, names, pieces)):
        places = list(job.costs)
        at = spans.of(job.location, job.location + 1)[0]
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
    found = None if job.known is None else job.known.at(at, *job.unions)
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
