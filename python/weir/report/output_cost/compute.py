# SPDX-License-Identifier: Apache-2.0
"""The cost of output by file and variable: calls on files in sessions in which they are written,
which are measured, and gathers and packing between these calls, which are inferred.

native/reader/output_cost.cc has the calls, output_gaps.h what is evidence of a gather.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from weir.analysis.columns import starts
from weir.analysis.patterns import find_patterns
from weir.analysis.ranks import RankName
from weir.analysis.remote import for_each
from weir.report.files.last_names import files_of_names
from weir.report.files.naming import Files
from weir.report.frame.build import Report, StepReport, figure
from weir.report.output_cost.calls import LIBRARIES, Callers, Labels, costs_in, labels_of
from weir.report.output_cost.waiting import waits_for
from weir.report.waits.account import Account
from weir.report.waits.locations import Locations, locations_of, names_of, roots_of
from weir.report.waits.summary import synchronisation_of
from weir.trace._abi import OF_FILE, OF_LABEL, OF_RANK
from weir.trace.ops import MPI_IO, STDIO

MEASURED = ("mpi_ns", "library_ns", "system_ns")
INFERRED = ("gather_ns", "packing_ns")
PARTS = MEASURED + INFERRED


@dataclass(frozen=True)
class Cost:
    """One file, several (`files` of them), or a variable of a file. rank: that with most work on
    it, elapsed_ns, in `calls` calls: the sum of PARTS; waiting_ns: for how long that rank waits for
    others in these calls, which is no part of it. all_ns: elapsed_ns of all ranks; waited_ns: of
    other ranks.

    Where a rank is in several calls at once, a moment counts once in each Cost."""

    file: str
    variable: str | None
    files: int
    rank: RankName
    ranks: int
    calls: int
    elapsed_ns: int
    mpi_ns: int
    library_ns: int
    system_ns: int
    gather_ns: int
    packing_ns: int
    waiting_ns: int
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
    """One step: by file and by variable, the dearest first; whole: all files together, of the rank
    with most work on them. together(name, files): the same of these files, under that name."""

    files: tuple[Cost, ...]
    variables: tuple[Cost, ...]
    whole: Cost
    together: Callable[[str, Sequence[str]], Cost]

    def by_pattern(self, files: Sequence[Cost]) -> tuple[Cost, ...]:
        """Files whose names differ in numbers as one, the dearest first."""
        found = find_patterns([one.file for one in files], [()] * len(files))
        return _dearest([
            files[one.members[0]] if len(one.members) == 1
            else self.together(one.text, [files[at].file for at in one.members])
            for one in found
        ])


def may_be_known(step: StepReport) -> bool:
    """Whether single calls were recorded and something was written, found without reading records.
    """
    columns = step.data.sums.by_file
    return step.level == "trace" and bool(
        ((columns.moved > 0) & columns.by_code("W") & columns.is_file).any()
    )


@figure
def output_costs_of(report: Report) -> list[OutputCost | None]:
    """Of each step; files have the names that they have in the table of files. None where single
    calls, or those of MPI in a parallel program, were not recorded, or nothing is written."""
    return [_cost_of(step, files_of_names(report)) if may_be_known(step) else None
        for step in report.steps]


def _cost_of(step: StepReport, behind: Files) -> OutputCost | None:
    found, has_mpi = synchronisation_of(step), True
    locations = found.account.locations
    if found.waits is None:
        if any(member.process.ranks > 1 for member in step.data.members):
            return None
        locations, has_mpi = locations_of(step.data, roots_of(step.data)), False
    labels = labels_of(step.data, step.names, behind)
    callers = _callers(step, locations, found.account if has_mpi else None)
    growing = waits_for(found.account, _writers(step, locations))
    pieces = [(file, labels, callers, growing) for file in range(len(step.data.files))]
    rows = np.concatenate(for_each(costs_in, step.data, step.names, pieces))
    if step.choice.rank is not None:
        at = rows["rank"]
        rows = rows[step.choice.chosen(locations.rank[at], locations.number[at])]
    ranks = names_of(step.data, step.names.ranks, locations)
    return _costs(ranks, labels, rows) if len(rows) else None


def _writers(step: StepReport, locations: Locations) -> np.ndarray:
    """Ranks that write files, or call MPI-IO or a library that does."""
    columns, writes = step.data.sums.by_member, np.zeros(len(locations) + 1, bool)
    of_output = (columns.moved > 0) & columns.by_code("W")
    of_output |= np.isin(columns.layer, (MPI_IO, *LIBRARIES))
    writes[locations.of_member[columns.member[of_output]]] = True
    return writes[:-1]


def _callers(step: StepReport, locations: Locations, account: Account | None) -> Callers:
    """Of a rank of a parallel program the thread that calls MPI counts, and all that it starts; of
    other programs all threads do."""
    thread = np.zeros(len(step.data.members), np.int64)
    if account is not None:
        called = account.operations.thread[account.operations.main]
        pid = [step.data.members[member].process.pid for member in locations.speaker.tolist()]
        thread[locations.speaker] = np.where(called > 0, called, pid)
    columns, is_plain = step.data.sums.by_member, np.ones(len(locations) + 1, bool)
    is_plain[locations.of_member[columns.member[columns.layer > STDIO]]] = False
    return Callers(locations.of_member, thread, is_plain[locations.of_member])


def _costs(ranks: list[RankName], labels: Labels, rows: np.ndarray) -> OutputCost:
    file = labels.file[rows["label"]].astype(np.int64)
    is_label = rows["of"] == OF_LABEL
    with_variables = np.unique(file[is_label & (file != rows["label"])])

    def costs(which: np.ndarray, variable: Callable[[int], str | None]) -> list[Cost]:
        every = [Figures(which, where, ranks) for where in _groups(which["label"])]
        return [one.cost(labels.texts[labels.file[one.label]], variable(one.label))
            for one in every]

    def name(label: int) -> str:
        return labels.texts[label] if labels.file[label] != label else "(the file)"

    of_file, of_rank = (rows[rows["of"] == of] for of in (OF_FILE, OF_RANK))
    label_of = {labels.texts[label]: label for label in labels.file[of_file["label"]]}

    def together(name: str, files: Sequence[str]) -> Cost:
        its = [label_of[file] for file in files]
        where = np.flatnonzero(np.isin(labels.file[of_file["label"]], its))
        return Figures(of_file, where, ranks).cost(name, None, len(files))

    files = costs(of_file, lambda _: None)
    named = costs(rows[is_label & np.isin(file, with_variables)], name)
    whole = Figures(of_rank, np.arange(len(of_rank)), ranks).cost("TOTAL", None, len(files))
    return OutputCost(_dearest(files), _dearest(named), whole, together)


def _groups(key: np.ndarray) -> Iterator[np.ndarray]:
    """Rows with one key."""
    if not len(key):
        return
    order = np.argsort(key, kind="stable")
    yield from np.split(order, starts(key[order])[1:])


class Figures:
    """Some rows added up by rank, and the rank with most work."""

    def __init__(self, rows: np.ndarray, where: np.ndarray, ranks: list[RankName]) -> None:
        its = rows[where]
        self.label = int(its["label"][0])
        every, place = np.unique(its["rank"], return_inverse=True)
        sums = {name: np.zeros(len(every), np.int64) for name in ("calls", *PARTS, "waiting_ns")}
        for name, into in sums.items():
            np.add.at(into, place, its[name].astype(np.int64))
        elapsed = sum(sums[name] for name in PARTS)
        longest = int(np.argmax(elapsed))
        self.figures = {name: int(of[longest]) for name, of in sums.items()} | {
            "elapsed_ns": int(elapsed[longest]),
            "rank": ranks[every[longest]],
            "ranks": len(every),
            "all_ns": int(elapsed.sum()),
            "waited_ns": int(its["waited_ns"].sum()),
        }

    def cost(self, file: str, variable: str | None, files: int = 1) -> Cost:
        return Cost(file=file, variable=variable, files=files, **self.figures)


def _dearest(costs: list[Cost]) -> tuple[Cost, ...]:
    return tuple(sorted(costs, key=lambda c: (-c.elapsed_ns, c.file, c.variable or "")))
