# SPDX-License-Identifier: Apache-2.0
"""The cost of output by file and variable: for how long a rank was busy with it, and in what.

A rank's output of a file goes from a call on it to the next one, when what lies between is
communication (a gather), or computing that is no longer than the calls beside it (packing). So a
frame of a history file is one stretch, and the forecast between two frames is none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weir.analysis.names import NameTable
from weir.analysis.remote import for_each
from weir.analysis.step import StepData
from weir.report.frame.build import StepReport, figure
from weir.report.output_cost.calls import Busy, Labels, busy_of, labels_of
from weir.report.wall.compute import wall_time_of
from weir.report.wall.lines import CALLS, IO, LIBRARY, Line, line_at
from weir.report.waits.account import Account
from weir.report.waits.locations import Locations
from weir.report.waits.summary import synchronisation_of

# computing between two calls that belongs to output, however short these are
PACKING_NS = 5_000_000
PARTS = ("communication_ns", "library_ns", "system_ns", "packing_ns")
_GATHERS = ("MPI_Gather", "MPI_Gatherv", "MPI_Reduce", "MPI_Recv", "MPI_Waitall")


@dataclass(frozen=True)
class Stretches:
    """Of one rank, by call: from the end of the call before it (of the same stretch of output) to
    its own end. begins: whether the call is the first of a stretch."""

    busy: Busy
    since_ns: np.ndarray
    begins: np.ndarray
    parts: np.ndarray  # by PARTS and call


@dataclass(frozen=True)
class Cost:
    """One file, or variable of a file. rank: that which was busy with it longest, for elapsed_ns in
    `times` stretches, in which PARTS add up. all_ns: of all ranks; waited_ns: of other ranks."""

    file: str
    variable: str | None
    rank: int
    ranks: int
    times: int
    elapsed_ns: int
    communication_ns: int
    library_ns: int
    system_ns: int
    packing_ns: int
    all_ns: int
    waited_ns: int


@dataclass(frozen=True)
class OutputCost:
    """One step: by file and by variable, the dearest first; whole: all of it, of the rank that was
    busy with output longest."""

    files: tuple[Cost, ...]
    variables: tuple[Cost, ...]
    whole: Cost


@figure
def output_cost_of(step: StepReport) -> OutputCost | None:
    """None where wall time is not known (weir.report.wall), or nothing is written."""
    wall = wall_time_of(step)
    if wall is None:
        return None
    labels = labels_of(step.data, step.names)
    found = synchronisation_of(step).account
    every = _stretches(step.data, step.names, wall.locations, labels, found)
    if step.choice.rank is not None:
        chosen = wall.locations.rank == step.choice.rank
        every = [one if chosen[at] else _only(one, slice(0, 0)) for at, one in enumerate(every)]
    if not any(len(one.busy) for one in every):
        return None
    waited = _waited(every, found)
    return _costs(step.names, wall.locations, labels, every, waited)


def _only(one: Stretches, rows: slice) -> Stretches:
    busy = Busy(*(column[rows] for column in vars(one.busy).values()))
    return Stretches(busy, one.since_ns[rows], one.begins[rows], one.parts[:, rows])


def _stretches(
    data: StepData, names: NameTable, locations: Locations, labels: Labels, account: Account
) -> list[Stretches]:
    ranks = list(zip(locations.speaker.tolist(), locations.members))
    every = for_each(busy_of, data, names, [(rank, labels) for rank in ranks])
    gathers = [_gathers(account, at) for at in range(len(ranks))]
    moments = [
        (rank, np.r_[busy.begin_ns, busy.end_ns, gather])
        for rank, busy, (gather, _) in zip(ranks, every, gathers)
    ]
    lines = for_each(line_at, data, names, moments)
    return [_joined(*one) for one in zip(every, lines, gathers)]


def _gathers(account: Account, location: int) -> tuple[np.ndarray, np.ndarray]:
    """Begins and ends of the collectives in which a rank may gather what it then writes."""
    instances = account.instances
    if not len(instances):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    wanted = [number for number, name in account.routines.items() if name in _GATHERS]
    rows = np.flatnonzero(
        (instances.location == location)
        & np.isin(instances.routine[instances.instance], wanted)
    )
    rows = rows[np.argsort(instances.end_ns[rows], kind="stable")]
    return instances.start_ns[rows], instances.end_ns[rows]


def _joined(busy: Busy, line: Line, gathers: tuple[np.ndarray, np.ndarray]) -> Stretches:
    """Calls with what lies before each of them and belongs to it."""
    count = len(busy)
    if not count:
        nothing = np.empty(0, np.int64)
        return Stretches(busy, nothing, nothing.astype(bool), np.empty((len(PARTS), 0), np.int64))
    before = np.r_[busy.begin_ns[0], busy.end_ns[:-1]]
    computing = (busy.begin_ns - before) - _between(line, LIBRARY, before, busy.begin_ns)
    length = busy.end_ns - busy.begin_ns
    longest = np.maximum(length, np.r_[0, length[:-1]])
    is_one_file = np.r_[False, busy.file[1:] == busy.file[:-1]]
    joins = is_one_file & (computing <= np.maximum(longest, PACKING_NS))
    since = np.where(joins, before, busy.begin_ns)
    since = np.where(joins, since, _gathered(busy, before, since, gathers))
    system = _between(line, IO, since, busy.end_ns)
    calls = _between(line, CALLS, since, busy.end_ns)
    library = _between(line, LIBRARY, since, busy.end_ns)
    packing = busy.end_ns - since - library
    parts = np.stack([calls - system, library - calls, system, packing])
    return Stretches(busy, since, ~joins, parts)


def _between(line: Line, union: int, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    return line.until(union, end) - line.until(union, begin)


def _gathered(
    busy: Busy, before: np.ndarray, since: np.ndarray, gathers: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """Since the gather directly before a stretch, where there is one behind the last call."""
    begins, ends = gathers
    if not len(ends):
        return since
    at = np.searchsorted(ends, busy.begin_ns, "right") - 1
    begin, end = begins[np.maximum(at, 0)], ends[np.maximum(at, 0)]
    near = np.maximum(end - begin, PACKING_NS)
    first = np.arange(len(since)) == 0
    fits = (at >= 0) & (busy.begin_ns - end <= near) & ((begin >= before) | first)
    return np.where(fits, np.minimum(begin, since), since)


def _waited(every: list[Stretches], account: Account) -> list[np.ndarray]:
    """By rank and call: how long other ranks waited for it meanwhile, in rank-ns; of a call that
    waits for several ranks, for the one that it waited for longest."""
    waits = account.waits
    found = [np.zeros(len(one.busy), np.int64) for one in every]
    lengths = np.zeros(len(waits), np.int64)
    rows_of = {}
    for location, one in enumerate(every):
        rows = np.flatnonzero((waits.awaited == location) & (waits.until_ns > waits.begin_ns))
        if not len(rows) or not len(one.busy):
            continue
        rows_of[location] = rows
        lengths[rows] = _covered(one, waits.until_ns[rows]) - _covered(one, waits.begin_ns[rows])
    order = np.lexsort((lengths, waits.group))
    is_kept = np.zeros(len(waits), bool)
    is_kept[order] = np.r_[np.diff(waits.group[order]) != 0, True][: len(order)]
    for location, rows in rows_of.items():
        rows = rows[is_kept[rows] & (lengths[rows] > 0)]
        one = every[location]
        depth = np.zeros(len(one.busy) + 1, np.int64)
        # Each call gets its own part of each wait: sums over begins and ends of the waits.
        for sign, moments in ((1, waits.until_ns[rows]), (-1, waits.begin_ns[rows])):
            at = np.searchsorted(one.busy.end_ns, moments, "right")
            np.add.at(depth, at, sign)
            inside = at < len(one.busy)
            part = np.maximum(moments[inside] - one.since_ns[at[inside]], 0)
            np.add.at(found[location], at[inside], sign * part)
        later = np.cumsum(depth[::-1])[::-1][1:]
        found[location] += later * (one.busy.end_ns - one.since_ns)
    return found


def _covered(one: Stretches, moments: np.ndarray) -> np.ndarray:
    """Time of a rank in output up to each moment."""
    length = one.busy.end_ns - one.since_ns
    before = np.r_[0, np.cumsum(length)]
    at = np.searchsorted(one.busy.end_ns, moments, "right")
    last = np.minimum(at, len(length) - 1)
    part = np.where(at < len(length), np.maximum(moments - one.since_ns[last], 0), 0)
    return before[at] + part


def _costs(
    names: NameTable, locations: Locations, labels: Labels, every: list[Stretches],
    waited: list[np.ndarray],
) -> OutputCost:  # fmt: skip
    by_file: dict[int, list[tuple[int, np.ndarray]]] = {}
    by_variable: dict[tuple[int, int], list[tuple[int, np.ndarray]]] = {}
    for location, one in enumerate(every):
        for number in np.unique(one.busy.file).tolist():
            rows = np.flatnonzero(one.busy.file == number)
            by_file.setdefault(number, []).append((location, rows))
            for variable in np.unique(one.busy.variable[rows]).tolist():
                its = rows[one.busy.variable[rows] == variable]
                by_variable.setdefault((number, variable), []).append((location, its))

    def cost(file: str, variable: str | None, of: list[tuple[int, np.ndarray]]) -> Cost:
        lengths = [int((every[at].busy.end_ns - every[at].since_ns)[r].sum()) for at, r in of]
        at, rows = of[lengths.index(max(lengths))]
        one = every[at]
        times = int(one.begins[rows].sum()) if variable is None else len(rows)
        return Cost(
            file, variable, int(locations.rank[at]), len(of), times, max(lengths),
            *one.parts[:, rows].sum(axis=1).tolist(),
            all_ns=sum(lengths), waited_ns=sum(int(waited[at][r].sum()) for at, r in of),
        )  # fmt: skip

    def dearest(costs: list[Cost]) -> tuple[Cost, ...]:
        return tuple(sorted(costs, key=lambda c: (-c.elapsed_ns, c.file, c.variable or "")))

    files = [cost(labels.texts[number], None, of) for number, of in by_file.items()]
    with_variables = {file for file, variable in by_variable if variable >= 0}
    variables = [
        cost(labels.texts[number], _variable(names, labels, number, variable), of)
        for (number, variable), of in by_variable.items()
        if number in with_variables
    ]
    whole = [(at, np.arange(len(one.busy))) for at, one in enumerate(every) if len(one.busy)]
    return OutputCost(dearest(files), dearest(variables), cost("TOTAL", None, whole))


def _variable(names: NameTable, labels: Labels, number: int, variable: int) -> str:
    """The name of a variable; of calls on the whole file (create, close) what they are."""
    if variable < 0:
        return "(the file)"
    text = names[variable].partition(":")[2]
    path = labels.texts[number]
    return text[len(path) + 1 :] if text.startswith(path + ":") else text.rpartition(":")[2]
