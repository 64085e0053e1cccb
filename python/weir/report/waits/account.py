# SPDX-License-Identifier: Apache-2.0
"""Who waits for whose I/O: the account of one step, by file and operation, by collective, by span of time.

Words (docs/guide/waits.md): **waited**, rank-seconds in which a rank waited while the awaited one was in I/O; **exposed**, seconds that
collectives would have been earlier had the awaited rank's I/O cost nothing; **critical**, the same of the I/O of all ranks. A second of a rank's
I/O that several collectives wait for is exposed, and critical, once. Each figure is distinguished by the awaited rank's files and operations, in
proportion to the time of its calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from weir.analysis.intervals import Price, Shares
from weir.analysis.names import NO_NAME, NameTable
from weir.analysis.remote import for_each
from weir.analysis.step import StepData
from weir.report.waits.awaited import Waits, awaited_in, completions_of, met_in_waits, waiting_ns, waits_of
from weir.report.waits.busy import Busy, busy_at
from weir.report.waits.completion import met_at_completion
from weir.report.waits.critical import CriticalTime, by_location, critical_time, stretches
from weir.report.waits.file_calls import file_arrivals, routines_of_files
from weir.report.waits.instances import Communicators, Instances, arrivals_of, communicators, instances_of, meeting_routines
from weir.report.waits.locations import Locations
from weir.report.waits.records import Calls, Records, calls_of

COSTS = ("waited_ns", "exposed_ns", "critical_ns")


@dataclass(frozen=True)
class Costs:
    """Rows by rank, file name (its number) and operation, those that cost something; times in ns."""

    location: np.ndarray
    name: np.ndarray
    op: np.ndarray
    waited_ns: np.ndarray
    exposed_ns: np.ndarray
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
    critical_time: CriticalTime
    costs: Costs
    span_figures: np.ndarray
    waiting_ns: int
    routines: dict[int, str]


_NO_COSTS = tuple(np.empty(0, kind) for kind in (np.int64, np.int32, np.uint8, *(float,) * len(COSTS)))


def account(
    data: StepData, names: NameTable, records: Records, locations: Locations, routines: dict[int, str], spans: Spans | None = None
) -> Account:
    """records: of MPI and MPI-IO, of any member; routines: names of MPI's routines by number.

    cost: four passes over the I/O of ranks that others wait for, one over that of the others, one more where MPI-IO is used; memory for the records
    of MPI, and for a few chunks of a rank's I/O per processor.
    """
    spans = spans or Spans.none()
    location = locations.of_member[records.member]
    own = communicators(records, np.where(location >= 0, np.r_[locations.program, -1][location], -1), names)

    def busy_of(asked: Sequence[tuple[int, np.ndarray]]) -> list[Busy]:
        return for_each(busy_at, data, names, [(locations.members[one], *timestamps) for one, *timestamps in asked])

    comms, of_files = file_arrivals(records, locations, own, busy_of)
    awaited = awaited_in(records)
    arrivals = met_at_completion(arrivals_of(records, own, locations), completions_of(records, awaited, own, locations), locations).joined(of_files)
    instances = instances_of(arrivals, comms.size, meeting_routines(routines), len(own.size))
    del arrivals, of_files  # the instances have them in their order
    met = met_in_waits(records, comms, instances)
    waits = waits_of(records, awaited, comms, locations, instances, met)
    del awaited
    of = stretches(instances, waits, int(data.columns.first_ns.min(initial=2**62)))
    windows = (
        _Windows(instances.location, of.since_ns, of.arrival_ns),
        _Windows(waits.awaited, waits.begin_ns, waits.until_ns),
        _Windows(spans.location, spans.begin_ns, spans.end_ns),
    )
    io = [np.zeros(len(one.location), np.int64) for one in windows]
    pieces = [(locations.members[location], *(side for one in windows for side in one.of(location)[1:])) for location in range(len(locations))]
    for location, found in enumerate(for_each(_io_within, data, names, pieces)):
        for one, into, ns in zip(windows, io, found):
            into[one.of(location)[0]] = ns
    del pieces
    waited, critical = _once(waits, io[1]), critical_time(instances, of, io[0])
    prices = _prices(len(locations), instances, waits, waited, critical)
    figures = np.zeros((len(spans.location), 1 + len(COSTS)))
    figures[:, 0] = io[2]
    some = [location for location, of_location in enumerate(prices) if any(len(price.edges) for price in of_location)]
    parts = for_each(_location_costs, data, names, [(locations.members[location], prices[location], *windows[2].of(location)[1:]) for location in some])
    for location, (_, of_spans) in zip(some, parts):
        figures[windows[2].of(location)[0], 1:] = of_spans
    every = [(np.full(len(columns[0]), location, np.int64), *columns) for location, (columns, _) in zip(some, parts)]
    costs = Costs(*(np.concatenate(column) for column in zip(_NO_COSTS, *every)))
    return Account(locations, comms, instances, waits, waited, critical, costs, figures, waiting_ns(records, instances, met), routines | routines_of_files())


class _Windows:
    """Stretches of time of ranks, and where those of each rank stand."""

    def __init__(self, location: np.ndarray, begins: np.ndarray, ends: np.ndarray):
        self.location, self.begins, self.ends = location, begins, ends
        self.rows_of = dict(by_location(location))

    def of(self, location: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, begins and ends of one rank."""
        rows = self.rows_of.get(location, np.empty(0, np.int64))
        return rows, self.begins[rows], self.ends[rows]


def _io_within(data: StepData, names: NameTable, members: Sequence[int], *sides: np.ndarray) -> list[np.ndarray]:
    """How long a rank was in I/O in windows of several kinds; sides: their begins and ends in turn."""
    busy = busy_at(data, names, members, *sides)
    return [busy.within(begins, ends) for begins, ends in zip(sides[::2], sides[1::2])]


def _once(waits: Waits, waited: np.ndarray) -> np.ndarray:
    """Of a call that waits for several ranks, the one that was longest in I/O: the call cannot have waited for each of them."""
    if not len(waits):
        return waited
    order = np.lexsort((waited, waits.group))
    is_last = np.r_[np.diff(waits.group[order]) != 0, True]
    kept = np.zeros(len(waited), np.int64)
    kept[order[is_last]] = waited[order[is_last]]
    return kept


def _prices(count: int, instances: Instances, waits: Waits, waited: np.ndarray, critical: CriticalTime) -> list[tuple[Price, Price, Price]]:
    """By rank: what a second of its I/O costs in waited, exposed and critical time."""
    nothing = Price.nothing()
    made = [(nothing, nothing, nothing)] * count
    seen = np.flatnonzero(waited > 0)
    of_waits = {one: seen[rows] for one, rows in by_location(waits.awaited[seen])}
    costly = np.flatnonzero((critical.critical_ns > 0) | (critical.exposed_ns > 0))
    of_instances = {one: costly[rows] for one, rows in by_location(instances.critical[costly])}
    for one in of_waits.keys() | of_instances.keys():
        rows, at = of_waits.get(one, seen[:0]), of_instances.get(one, costly[:0])
        messages = rows[waits.instance[rows] < 0]
        by_message = Price.added(waits.begin_ns[messages], waits.until_ns[messages])
        by_message = Price(by_message.edges, np.minimum(by_message.values, 1.0))
        collective = [
            Price.greatest([by_message, *(_of_set(instances, critical, at[group], ns) for _, group in by_location(critical.kind[at]))])
            for ns in (critical.exposed_ns, critical.critical_ns)
        ]
        made[one] = Price.added(waits.begin_ns[rows], waits.until_ns[rows]), collective[0], Price.greatest(collective)
    return made


def _of_set(instances: Instances, critical: CriticalTime, at: np.ndarray, ns: np.ndarray) -> Price:
    """Of the collectives of one set of ranks, which follow one another."""
    at = at[np.argsort(instances.arrival_ns[at], kind="stable")]
    share = ns[at] / np.maximum(critical.io_ns[at], 1)
    return Price.of_windows(critical.since_ns[at], instances.arrival_ns[at], share)


def _location_costs(
    data: StepData, names: NameTable, members: Sequence[int], prices: tuple[Price, ...], begins: np.ndarray, ends: np.ndarray
) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Of one rank: arrays of Costs but the first, and COSTS of its spans, which last from begins to ends."""
    busy = busy_at(data, names, members, begins, ends, *(price.edges for price in prices))
    costs = [price.cost(busy) for price in prices]
    of_spans = np.stack([cost.until(ends) - cost.until(begins) for cost in costs], 1)
    shares = [Shares(cost) for cost in costs]
    for calls in _own_calls(data, names, members):
        for one in shares:
            one.add(calls.start, calls.end)
    sums: dict[int, np.ndarray] = {}  # by name and operation
    for calls in _own_calls(data, names, members):
        found, at = np.unique((calls.name - NO_NAME).astype(np.int64) << 8 | calls.op, return_inverse=True)
        every = [np.bincount(at, one.of(calls.start, calls.end), len(found)) for one in shares]
        for key, of in zip(found.tolist(), np.stack(every, 1)):
            sums[key] = sums.get(key, 0.0) + of
    keys = np.array([key for key, of in sums.items() if of.any()], np.int64)
    columns = np.array([sums[key] for key in keys.tolist()]).reshape(-1, len(COSTS)).T
    return (((keys >> 8) + NO_NAME).astype(np.int32), (keys & 255).astype(np.uint8), *columns), of_spans


def _own_calls(data: StepData, names: NameTable, members: Sequence[int]) -> Iterator[Calls]:
    """Those whose time lies within no other's."""
    for calls in calls_of(data, members, names):
        own = calls.own()
        if len(own.start):
            yield own
