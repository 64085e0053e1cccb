# SPDX-License-Identifier: Apache-2.0
"""The account of a step as tables, JSON and frames show it: by file, by collective, by phase. Times
in ns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from weir.analysis.ahead import begin
from weir.analysis.columns import Columns, distinct, numbered, order_of, starts
from weir.analysis.memory import return_memory
from weir.analysis.names import NO_NAME, NameTable
from weir.analysis.step import StepData
from weir.report.frame.build import StepReport, figure
from weir.report.waits.account import COSTS, Account, Spans, account, meet
from weir.report.waits.awaited import Waits
from weir.report.waits.file_calls import file_calls
from weir.report.waits.instances import PREFIX
from weir.report.waits.locations import lives_of, locations_of
from weir.report.waits.phase_rules import PhaseRule
from weir.report.waits.phases import (
    MARKS,
    PhaseSpans,
    PhaseTotals,
    phase_totals,
    phases_of,
)
from weir.report.waits.ready_made import fitting_rules
from weir.report.waits.records import chosen, records_of
from weir.trace.ops import mpi_routines, ops

RECORDS = ("MPI_collective", "MPI_start_collective", "MPI_wait", "MPI_receive", "MPI_probe",
    "MPI_send", "MPI_awaited")
BEGIN = "MPI_Init"  # of each rank of a parallel program


LEAST_SHARE = 0.01  # of what a file costs: ranks with less are not named


@dataclass(frozen=True)
class OpWaits:
    """One operation on a file."""

    op: str
    waited_ns: int
    path_ns: int
    critical_ns: int


@dataclass(frozen=True)
class FileWaits:
    """One file, with the operations that cost most (critical and waited) first, and the ranks whose
    I/O on it was waited for, likewise, but for those with less than LEAST_SHARE of it, by their
    numbers (weir.analysis.ranks). io_ns: of all ranks. recorded: the name in the records, where it
    is another one; empty: several."""

    file: str
    io_ns: int
    waited_ns: int
    path_ns: int
    critical_ns: int
    ops: tuple[OpWaits, ...]
    ranks: tuple[int, ...]
    recorded: str | None = None


@dataclass(frozen=True)
class RoutineWaits:
    """Calls of one routine on one communicator (`world`, ...; empty: several). calls: instances of
    a collective, otherwise calls with a known partner. waiting_ns: of all ranks until the awaited
    one came; waited_ns: of it while that one was in I/O. last: the rank most often waited for, in
    `last_times` of the calls in which anybody waited (`times`)."""

    routine: str
    communicator: str
    calls: int
    waiting_ns: int
    waited_ns: int
    last: int | None
    last_times: int
    times: int


@dataclass(frozen=True)
class RankTime:
    """One rank on the critical path."""

    rank: int
    computing_ns: int
    mpi_ns: int
    io_ns: int


@dataclass(frozen=True)
class StepWaits:
    """One step. waiting_ns: rank-seconds in MPI's waits; waited_ns: of them those in which the
    awaited rank was in I/O; path_ns, critical_ns: seconds of the step (docs/guide/waits.md);
    critical_most_ns: if ranks wait for the I/O of their other threads, background_ns; path: the
    critical path by rank; not_followed: waits whose partner came behind them; unknown_ns: of all
    ranks in calls of which it is not known for whom they wait, and in which routines. incomplete:
    collectives of which the records of some ranks are missing."""

    ranks: int
    nodes: int
    collectives: int
    incomplete: int
    waiting_ns: int
    waited_ns: int
    path_ns: int
    critical_ns: int
    critical_most_ns: int
    background_ns: int
    not_followed: int
    unknown_ns: int
    unknown_in: tuple[str, ...]
    path: tuple[RankTime, ...]
    files: tuple[FileWaits, ...]
    routines: tuple[RoutineWaits, ...]


@dataclass(frozen=True)
class Synchronisation:
    """waits: None when the step has no records of MPI's synchronisation. account: the arrays behind
    it."""

    waits: StepWaits | None
    spans: PhaseSpans
    account: Account

    @cached_property
    def phases(self) -> tuple[PhaseTotals, ...]:
        return tuple(phase_totals(self.spans, self.account.span_figures))


def synchronisation(data: StepData, names: NameTable,
        rules: tuple[PhaseRule, ...] = ()) -> Synchronisation:
    """All of it, for all ranks of a step. rules: phases that begin at files or barriers."""
    records = records_of(data, names, BEGIN, *RECORDS, *MARKS, *file_calls())
    speakers = distinct(records.member).tolist()
    if rules and not speakers:
        speakers = [index for index, one in enumerate(data.members) if one.rank >= 0
            and not one.is_launcher]
    locations, routines = locations_of(data, speakers), mpi_routines()
    lives, begins = lives_of(data, locations), records.of(BEGIN)
    phases = partial(phases_of, data, names, records, locations, lives, routines, rules)
    begun = None if rules else begin(phases)[0]  # with rules they read records, too
    records = records.of(*RECORDS, *file_calls())
    has_waits = bool(chosen(RECORDS)[records.op].any())
    met = meet(data, names, records, begins, locations, lives, routines)
    del records
    spans = phases() if begun is None else begun.answer()
    del phases
    return_memory()
    found = account(data, names, met, lives,
        Spans(spans.location, spans.begin_ns, spans.end_ns))
    waits = _step_waits(data, found, names) if has_waits else None
    return_memory()
    return Synchronisation(waits, spans, found)


def _step_waits(data: StepData, found: Account, names: NameTable) -> StepWaits:
    return StepWaits(
        ranks=len(found.locations),
        nodes=len(np.unique(found.locations.node)),
        collectives=len(found.instances),
        incomplete=found.instances.incomplete,
        waiting_ns=found.waiting_ns,
        waited_ns=found.costs.total("waited_ns"),
        path_ns=sum(one.io_ns for one in found.critical.ranks),
        critical_ns=found.critical.critical_ns,
        critical_most_ns=found.critical.most_ns,
        background_ns=found.critical.background_ns,
        not_followed=found.critical.not_followed,
        unknown_ns=sum(found.operations.unknown_ns.values()),
        unknown_in=_unknown_in(found),
        path=_path(found),
        files=tuple(_files(data.sums.by_file, found, names)),
        routines=tuple(_routines(found, names)),
    )


def _unknown_in(found: Account) -> tuple[str, ...]:
    """The few routines with most of that time."""
    by_routine = found.operations.unknown_ns
    most = sorted(by_routine, key=lambda one: -by_routine[one])
    return tuple(found.routines.get(one, f"routine {one}") for one in most[:3] if by_routine[one])


def _path(found: Account) -> tuple[RankTime, ...]:
    """Ranks of several programs have a line each."""
    number = found.locations.number
    return tuple(
        RankTime(int(number[one.location]), one.computing_ns, one.mpi_ns, one.io_ns)
        for one in found.critical.ranks
    )


def _files(columns: Columns, found: Account, names: NameTable) -> list[FileWaits]:
    """The file that costs the forecast most comes first."""
    costs = found.costs
    if not len(costs.location):
        return []
    io_of: dict[int, int] = {}
    used = columns.where(columns.by_code("RWOCM") & np.isin(columns.name, costs.name))
    for name, ns in zip(used.name.tolist(), used.own_ns.tolist()):
        io_of[name] = io_of.get(name, 0) + ns
    order = np.lexsort((costs.op, costs.name))
    limits = [*starts(costs.name[order]).tolist(), len(order)]
    made = []
    for begin, end in zip(limits, limits[1:]):
        rows = order[begin:end]
        sums = [round(float(getattr(costs, figure)[rows].sum())) for figure in COSTS]
        if not any(sums):
            continue
        name = int(costs.name[rows[0]])
        by_rank: dict[int, float] = {}
        for location, ns in zip(costs.location[rows].tolist(),
                (costs.critical_ns[rows] + costs.waited_ns[rows]).tolist()):
            rank = int(found.locations.number[location])
            by_rank[rank] = by_rank.get(rank, 0.0) + ns
        least = max(0.5, LEAST_SHARE * sum(by_rank.values()))
        ranks = tuple(rank for rank, ns in sorted(by_rank.items(),
            key=lambda item: (-item[1], item[0])) if ns >= least)
        made.append(FileWaits(names[name] if name != NO_NAME else "(no file)", io_of.get(name, 0),
            *sums, _ops(found, rows), ranks))
    return sorted(made, key=lambda one: (-one.critical_ns, -one.waited_ns, one.file))


def _ops(found: Account, rows: np.ndarray) -> tuple[OpWaits, ...]:
    costs, made = found.costs, []
    for op in np.unique(costs.op[rows]).tolist():
        at = rows[costs.op[rows] == op]
        made.append(OpWaits(ops()[op].name, *(round(float(getattr(costs, figure)[at].sum()))
            for figure in COSTS)))
    return tuple(sorted((one for one in made if one.waited_ns or one.path_ns or one.critical_ns),
        key=lambda one: (-one.critical_ns - one.waited_ns, one.op)))


def _routines(found: Account, names: NameTable) -> list[RoutineWaits]:
    """By routine and communicator, those with most waiting first."""
    waits, instances = found.waits, found.instances
    keys, at = numbered(_routine_keys(instances.routine, found.comms.name[instances.comm]))
    called = dict(zip(keys.tolist(), np.bincount(at, minlength=len(keys)).tolist()))
    keys, at = numbered(_routine_keys(waits.routine, waits.name))
    order = order_of(at, waits.group).astype(np.int32)
    limits = np.r_[0, np.cumsum(np.bincount(at, minlength=len(keys)))].tolist()
    del at
    made = []
    for key, begin, end in zip(keys.tolist(), limits, limits[1:]):
        rows = order[begin:end]
        routine, name = int(waits.routine[rows[0]]), int(waits.name[rows[0]])
        length = np.maximum(waits.until_ns[rows] - waits.begin_ns[rows], 0)
        # a call that waited for several ranks waited once
        is_first = np.r_[True, np.diff(waits.group[rows]) != 0]
        last, last_times, times = _most_often(
            found.locations.number[_of_calls(waits, rows[length > 0], len(found.locations))])
        made.append(
            RoutineWaits(
                found.routines.get(routine, f"routine {routine}"), communicator(names[name])
                if name != NO_NAME else "",
                called.get(key) or int(is_first.sum()), int(length[is_first].sum()),
                int(found.waited_ns[rows].sum()),
                last, last_times, times,
            )  # fmt: skip
        )
    return sorted(made, key=lambda one: (-one.waiting_ns, one.routine, one.communicator))


def _routine_keys(routine: np.ndarray, name: np.ndarray) -> np.ndarray:
    return routine.astype(np.int64) << 32 | name.astype(np.int64) + 1


def _most_often(numbers: np.ndarray) -> tuple[int | None, int, int]:
    """The rank that is there most often, of equals the first, how often, and how many there are."""
    if not len(numbers):
        return None, 0, 0
    found, at = numbered(numbers)
    times = np.bincount(at)
    most = int(times.argmax())
    return int(found[most]), int(times[most]), len(numbers)


def _of_calls(waits: Waits, rows: np.ndarray, locations: int) -> np.ndarray:
    """The awaited rank of each collective once, of each message."""
    instance, awaited = waits.instance[rows], waits.awaited[rows]
    is_message = instance < 0
    of_collectives = instance[~is_message].astype(np.int64) * locations + awaited[~is_message]
    return np.r_[distinct(of_collectives) % locations, awaited[is_message]]


def communicator(name: str) -> str:
    """As tables show it: `world`, `self`, `world/3.0`, ..."""
    return name.removeprefix(PREFIX).rpartition(":")[0] or name


@figure
def synchronisation_of(step: StepReport) -> Synchronisation:
    """Waits and phases, always of all ranks: who waits for one rank is another."""
    rules = step.phase_rules or fitting_rules(step.data, step.names)
    return synchronisation(step.data, step.names, rules)
