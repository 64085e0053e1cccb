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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from weir.analysis.intervals import Cost, Price, Shares
from weir.analysis.names import NO_NAME, NameTable
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
from weir.report.waits.records import Calls, Records, Threads, calls_of, threads_of

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
    others: list[Threads]  # by rank: threads of which that leaves out
    costs: Costs
    span_figures: np.ndarray
    waiting_ns: int
    routines: dict[int, str]


_NO_COSTS = tuple(np.empty(0, kind) for kind in (np.int64, np.int32, np.uint8,
    *(float,) * len(COSTS)))


def account(
    data: StepData, names: NameTable, records: Records, begins: Records, locations: Locations,
    lives: np.ndarray, routines: dict[int, str], spans: Spans | None = None,
) -> Account:  # fmt: skip
    """records: of MPI and MPI-IO, of any member; begins: of MPI_Init; lives: start and end of each
    rank; routines: names of MPI's routines by number.

    cost: a pass over the I/O of all ranks, two more over that of ranks that others wait for or that
    are on the critical path, one more where MPI-IO is used, or threads do I/O that do not call MPI;
    memory for the records of MPI, and for a few chunks of a rank's I/O per processor.
    """
    spans = spans or Spans.none()
    location = locations.of_member[records.member]
    program = np.where(location >= 0, np.r_[locations.program, -1][location], -1)
    own = communicators(records, program, names)

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
    waits = waits_of(records, awaited, comms, locations, instances, met)
    found = operations_of(
        records, awaited, comms, locations, instances, met, begins, files, lives, routines
    )
    del awaited, files
    windows = (
        _Windows(waits.awaited, waits.begin_ns, waits.until_ns),
        _Windows(spans.location, spans.begin_ns, spans.end_ns),
    )
    others = _others(data, locations, found)
    own_ns, all_ns, io = _io_in(data, names, locations, found, others, windows)
    waited, critical = _once(waits, io[0]), critical_of(found, own_ns, all_ns)
    prices = _prices(len(locations), waits, waited, critical)
    of_mains = [one for (one, _), is_main in zip(others, found.main.tolist()) if is_main]
    costs, figures = _costs(data, names, locations, prices, of_mains, windows[1])
    figures[:, 0] = io[1]
    in_mpi = waiting_ns(records, instances, met)
    every = routines | routines_of_files()
    return Account(
        locations, comms, instances, waits, waited, critical, found, own_ns, of_mains, costs,
        figures, in_mpi, every,
    )  # fmt: skip


class _Windows:
    """Stretches of time of ranks, and where those of each rank stand."""

    def __init__(self, location: np.ndarray, begins: np.ndarray, ends: np.ndarray):
        self.location, self.begins, self.ends = location, begins, ends
        self.rows_of = dict(by_location(location))

    def of(self, location: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, begins and ends of one rank."""
        rows = self.rows_of.get(location, np.empty(0, np.int64))
        return rows, self.begins[rows], self.ends[rows]


def _others(
    data: StepData, locations: Locations, found: Operations
) -> list[tuple[Threads, Threads]]:
    """By strand: that of its rank's threads it alone is wanted; and that those that call MPI, but
    it, are not. Nothing where it is alone."""
    made: list[tuple[Threads, Threads]] = []
    for location, thread in zip(found.location_of_strand.tolist(), found.thread.tolist()):
        member = int(locations.speaker[location])
        is_alone = thread < 0 or (threads_of(data, member) == thread).all()
        calling = found.thread[(found.location_of_strand == location) & (found.thread != thread)]
        own: Threads = {} if is_alone else {member: (True, np.array([thread]))}
        callers: Threads = {member: (False, calling)} if len(calling) else {}
        made.append((own, callers))
    return made


def _io_in(
    data: StepData, names: NameTable, locations: Locations, found: Operations,
    others: list[tuple[Threads, Threads]], windows: tuple[_Windows, ...],
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:  # fmt: skip
    """The I/O in front of each operation, of the thread's own and of all that do not call MPI; and
    the ranks' in the windows."""
    gaps = found.replay.gaps()
    strands = len(others)
    rows = np.searchsorted(found.replay.strand, np.arange(strands + 1)).tolist()
    own_ns, all_ns = (np.zeros(len(found.replay), np.int64) for _ in range(2))
    io = [np.zeros(len(one.location), np.int64) for one in windows]
    pieces = []
    for strand, location in enumerate(found.location_of_strand.tolist()):
        of = slice(rows[strand], rows[strand + 1])
        is_main = bool(found.main[strand])
        sides = [side for one in windows for side in one.of(location)[1:]] if is_main else []
        members = locations.members[location] if is_main else (int(locations.speaker[location]),)
        pieces.append((members, others[strand], *(side[of] for side in gaps), *sides))
    for strand, (own, every, *more) in enumerate(for_each(_io_within, data, names, pieces)):
        of = slice(rows[strand], rows[strand + 1])
        own_ns[of], all_ns[of] = own, every if found.main[strand] else own
        for one, into, ns in zip(windows, io, more):
            into[one.of(int(found.location_of_strand[strand]))[0]] = ns
    return own_ns, all_ns, io


def _io_within(
    data: StepData, names: NameTable, members: Sequence[int], others: tuple[Threads, Threads],
    begins: np.ndarray, ends: np.ndarray, *sides: np.ndarray,
) -> list[np.ndarray]:  # fmt: skip
    """How long a strand was in I/O in front of its operations: by itself, and with threads that do
    not call MPI; and its rank in windows of several kinds, whose begins and ends are `sides`."""
    whole = busy_at(data, names, members, begins, ends, *sides)
    found = [
        whole if not left_out else busy_at(data, names, members, begins, ends, without=left_out)
        for left_out in others
    ]
    in_front = [busy.within(begins, ends) for busy in found]
    return in_front + [whole.within(*pair) for pair in zip(sides[::2], sides[1::2])]


def _once(waits: Waits, waited: np.ndarray) -> np.ndarray:
    """Of a call that waits for several ranks, the one that was longest in I/O: the call cannot have
    waited for each of them."""
    if not len(waits):
        return waited
    order = np.lexsort((waited, waits.group))
    is_last = np.r_[np.diff(waits.group[order]) != 0, True]
    kept = np.zeros(len(waited), np.int64)
    kept[order[is_last]] = waited[order[is_last]]
    return kept


_Prices = tuple[Price, Price, Price]


def _prices(count: int, waits: Waits, waited: np.ndarray, critical: Critical) -> list[_Prices]:
    """By rank: what a second of its I/O costs in waited, path and critical time."""
    nothing = Price.nothing()
    made = [(nothing, nothing, nothing)] * count
    seen, path = np.flatnonzero(waited > 0), critical.path
    of_waits = {one: seen[rows] for one, rows in by_location(waits.awaited[seen])}
    of_path = dict(by_location(path.location))
    for one in of_waits.keys() | of_path.keys():
        rows, at = of_waits.get(one, seen[:0]), of_path.get(one, seen[:0])
        at = at[np.argsort(path.begin_ns[at], kind="stable")]
        begins, ends, price = path.begin_ns[at], path.end_ns[at], path.price[at]
        made[one] = (
            Price.added(waits.begin_ns[rows], waits.until_ns[rows]),
            Price.of_windows(begins, ends, np.ones(len(at))),
            Price.of_windows(begins, ends, price),
        )
    return made


def _costs(
    data: StepData, names: NameTable, locations: Locations, prices: list[_Prices],
    others: list[Threads], spans: _Windows,
) -> tuple[Costs, np.ndarray]:  # fmt: skip
    """What I/O costs by rank, file and operation; and by span, behind an empty column."""
    figures = np.zeros((len(spans.location), 1 + len(COSTS)))
    some = [at for at, of in enumerate(prices) if any(len(price.edges) for price in of)]
    parts = for_each(
        _location_costs, data, names,
        [(locations.members[at], prices[at], others[at], *spans.of(at)[1:]) for at in some],
    )  # fmt: skip
    for at, (_, of_spans) in zip(some, parts):
        figures[spans.of(at)[0], 1:] = of_spans
    every = [(np.full(len(of[0]), at, np.int64), *of) for at, (of, _) in zip(some, parts)]
    return Costs(*(np.concatenate(column) for column in zip(_NO_COSTS, *every))), figures


def _location_costs(
    data: StepData, names: NameTable, members: Sequence[int], prices: _Prices, others: Threads,
    begins: np.ndarray, ends: np.ndarray,
) -> tuple[tuple[np.ndarray, ...], np.ndarray]:  # fmt: skip
    """Of one rank: arrays of Costs but the first, and COSTS of its spans, from begins to ends.
    others: its threads that count in waited time alone."""
    groups = [(prices, {})] if not others else [(prices[:1], {}), (prices[1:], others)]
    sums: dict[int, np.ndarray] = {}  # by name and operation
    of_spans, done = [], 0
    for some, without in groups:
        busy = busy_at(
            data, names, members, begins, ends, *(one.edges for one in some), without=without
        )
        costs = [price.cost(busy) for price in some]
        of_spans += [cost.until(ends) - cost.until(begins) for cost in costs]
        for key, of in _shares(data, names, members, without, costs).items():
            sums.setdefault(key, np.zeros(len(COSTS)))[done : done + len(some)] += of
        done += len(some)
    keys = np.array([key for key, of in sums.items() if of.any()], np.int64)
    columns = np.array([sums[key] for key in keys.tolist()]).reshape(-1, len(COSTS)).T
    name, op = (keys >> 8) + NO_NAME, keys & 255
    return (name.astype(np.int32), op.astype(np.uint8), *columns), np.stack(of_spans, 1)


def _shares(
    data: StepData, names: NameTable, members: Sequence[int], without: Threads, costs: list[Cost]
) -> dict[int, np.ndarray]:
    """The costs by name and operation, as one number."""
    shares = [Shares(cost) for cost in costs]
    for calls in _own_calls(data, names, members, without):
        for one in shares:
            one.add(calls.start, calls.end)
    sums: dict[int, np.ndarray] = {}
    for calls in _own_calls(data, names, members, without):
        found, at = np.unique((calls.name - NO_NAME).astype(np.int64) << 8 | calls.op,
            return_inverse=True)
        every = [np.bincount(at, one.of(calls.start, calls.end), len(found)) for one in shares]
        for key, of in zip(found.tolist(), np.stack(every, 1)):
            sums[key] = sums.get(key, 0.0) + of
    return sums


def _own_calls(
    data: StepData, names: NameTable, members: Sequence[int], without: Threads
) -> Iterator[Calls]:
    """Those whose time lies within no other's."""
    for calls in calls_of(data, members, names, without):
        own = calls.own()
        if len(own.start):
            yield own
