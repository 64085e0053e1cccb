# SPDX-License-Identifier: Apache-2.0
"""The cost of output by file and variable: calls on files in sessions in which they are written,
which are measured, and gathers and packing between these calls, which are inferred.

native/reader/output_cost.cc has the calls, output_gaps.h what is evidence of a gather.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from weir.analysis.columns import starts
from weir.analysis.remote import for_each
from weir.report.frame.build import StepReport, figure
from weir.report.output_cost.calls import LIBRARIES, Callers, Labels, costs_in, labels_of
from weir.report.output_cost.waiting import waits_for
from weir.report.waits.account import Account
from weir.report.waits.locations import Locations, locations_of
from weir.report.waits.summary import synchronisation_of
from weir.trace.ops import STDIO

MEASURED = ("mpi_ns", "library_ns", "system_ns")
INFERRED = ("gather_ns", "packing_ns")
PARTS = MEASURED + INFERRED


@dataclass(frozen=True)
class Cost:
    """One file, or variable of a file. rank: that which was busy with it longest, for elapsed_ns,
    in `calls` calls: the sum of PARTS. all_ns: of all ranks; waited_ns: of other ranks."""

    file: str
    variable: str | None
    rank: int
    ranks: int
    calls: int
    elapsed_ns: int
    mpi_ns: int
    library_ns: int
    system_ns: int
    gather_ns: int
    packing_ns: int
    all_ns: int
    waited_ns: int

    @property
    def measured_ns(self) -> int:
        return self.mpi_ns + self.library_ns + self.system_ns

    @property
    def inferred_ns(self) -> int:
        return self.gather_ns + self.packing_ns


@dataclass(frozen=True)
class OutputCost:
    """One step: by file and by variable, the dearest first; whole: all of it, of the rank that was
    busy with output longest."""

    files: tuple[Cost, ...]
    variables: tuple[Cost, ...]
    whole: Cost


def may_be_known(step: StepReport) -> bool:
    """Whether single calls were recorded and something was written, found without reading records.
    """
    columns = step.data.columns
    return step.level == "trace" and bool(
        ((columns.moved > 0) & columns.by_code("W") & columns.is_file).any()
    )


@figure
def output_cost_of(step: StepReport) -> OutputCost | None:
    """None where single calls, or those of MPI in a parallel program, were not recorded, or nothing
    is written."""
    if not may_be_known(step):
        return None
    found, has_mpi = synchronisation_of(step), True
    locations = found.account.locations
    if found.waits is None:
        if any(member.process.ranks > 1 for member in step.data.members):
            return None
        locations, has_mpi = locations_of(step.data, _roots(step)), False
    labels = labels_of(step.data, step.names)
    callers = _callers(step, locations, found.account if has_mpi else None)
    writes = _writers(step, locations)
    waited, waiting = waits_for(found.account, writes)
    pieces = [(file, labels, callers, waited, waiting) for file in range(len(step.data.files))]
    rows = np.concatenate(for_each(costs_in, step.data, step.names, pieces))
    if step.choice.rank is not None:
        rows = rows[locations.rank[rows["rank"]] == step.choice.rank]
    return _costs(locations, labels, rows) if len(rows) else None


def _writers(step: StepReport, locations: Locations) -> np.ndarray:
    """Ranks that write files, or call a library that does."""
    columns, writes = step.data.columns, np.zeros(len(locations) + 1, bool)
    of_output = (columns.moved > 0) & columns.by_code("W") | np.isin(columns.layer, LIBRARIES)
    writes[locations.of_member[columns.member[of_output]]] = True
    return writes[:-1]


def _roots(step: StepReport) -> list[int]:
    """Processes that no other process of the step started, of a step without MPI."""
    data = step.data
    children = {child for every in data.children.values() for child in every}
    pids = {(one.file, one.process.pid) for one in data.members if not one.is_launcher}
    return [
        index for index, one in enumerate(data.members)
        if not one.is_launcher and one.process.whole
        and (index not in children or (one.file, one.process.ppid) not in pids)
    ]  # fmt: skip


def _callers(step: StepReport, locations: Locations, account: Account | None) -> Callers:
    """Of a rank of a parallel program the thread that calls MPI counts, and all that it starts; of
    other programs all threads do."""
    thread = np.zeros(len(step.data.members), np.int64)
    if account is not None:
        called = account.operations.thread[account.operations.main]
        pid = [step.data.members[member].process.pid for member in locations.speaker.tolist()]
        thread[locations.speaker] = np.where(called > 0, called, pid)
    columns, is_plain = step.data.columns, np.ones(len(locations) + 1, bool)
    is_plain[locations.of_member[columns.member[columns.layer > STDIO]]] = False
    return Callers(locations.of_member, thread, is_plain[locations.of_member])


def _costs(locations: Locations, labels: Labels, rows: np.ndarray) -> OutputCost:
    file = labels.file[rows["label"]].astype(np.int64)
    with_variables = np.unique(file[file != rows["label"]])
    of_file = [Figures(rows, where, locations) for where in _groups(file)]
    variables = rows[np.isin(file, with_variables)]
    of_variable = [Figures(variables, where, locations) for where in _groups(variables["label"])]

    def name(label: int) -> str:
        return labels.texts[label] if labels.file[label] != label else "(the file)"

    files = [one.cost(labels.texts[labels.file[one.label]], None) for one in of_file]
    named = [one.cost(labels.texts[labels.file[one.label]], name(one.label)) for one in of_variable]
    whole = Figures(rows, np.arange(len(rows)), locations).cost("TOTAL", None)
    return OutputCost(_dearest(files), _dearest(named), whole)


def _groups(key: np.ndarray) -> Iterator[np.ndarray]:
    """Rows with one key."""
    if not len(key):
        return
    order = np.argsort(key, kind="stable")
    yield from np.split(order, starts(key[order])[1:])


class Figures:
    """Some rows added up by rank, and the rank that takes longest."""

    def __init__(self, rows: np.ndarray, where: np.ndarray, locations: Locations) -> None:
        its = rows[where]
        self.label = int(its["label"][0])
        every, place = np.unique(its["rank"], return_inverse=True)
        sums = {name: np.zeros(len(every), np.int64) for name in ("calls", *PARTS)}
        for name, into in sums.items():
            np.add.at(into, place, its[name].astype(np.int64))
        elapsed = sum(sums[name] for name in PARTS)
        longest = int(np.argmax(elapsed))
        self.figures = {name: int(of[longest]) for name, of in sums.items()} | {
            "elapsed_ns": int(elapsed[longest]),
            "rank": int(locations.rank[every[longest]]),
            "ranks": len(every),
            "all_ns": int(elapsed.sum()),
            "waited_ns": int(its["waited_ns"].sum()),
        }

    def cost(self, file: str, variable: str | None) -> Cost:
        return Cost(file=file, variable=variable, **self.figures)


def _dearest(costs: list[Cost]) -> tuple[Cost, ...]:
    return tuple(sorted(costs, key=lambda c: (-c.elapsed_ns, c.file, c.variable or "")))
