# SPDX-License-Identifier: Apache-2.0
"""Who waits for whose I/O, as tables, JSON and sentences (docs/guide/waits.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weir.analysis.names import shown
from weir.report.frame.build import Report, StepReport
from weir.report.frame.figures import percent, short, spans
from weir.report.frame.kind import TableKind
from weir.report.frame.table import Table
from weir.report.waits.summary import FileWaits, RoutineWaits, StepWaits, synchronisation_of

MOST_RANKS = 4
LEAST_NS = 500_000  # in a table of msec
CRITICAL_SHARE = 0.02  # of a step: worth a sentence
LEGEND = (
    "for I/O: waits in MPI for a rank in I/O, added up over the waiting ranks",
    "exposed: I/O of the awaited rank while others waited for it",
    "critical: time by which I/O delays the step",
)


def wait_tables(report: Report, top: int | None) -> Iterator[Table]:
    """One line for each step that waited in MPI; then, step by step, its files and its routines of MPI. Nothing where MPI was not recorded."""
    steps = [step for step in report.steps if synchronisation_of(step).waits is not None]
    if not steps:
        return
    yield _step_table(steps)
    for step in steps:
        waits = synchronisation_of(step).waits
        assert waits is not None
        files = _file_table(step, waits, top)
        if files is not None:
            yield files
        if waits.routines:
            yield _routine_table(step, waits, top)


def seconds(ns: int) -> str:
    return f"{ns / 1e9:.3f}"


def _step_table(steps: list[StepReport]) -> Table:
    def cells(name: str, wall: int, io: int, active: int | None, *figures: int) -> tuple[str, ...]:
        waiting, waited, exposed, critical = figures
        return (
            name, seconds(wall), seconds(io), "-" if active is None else seconds(active), seconds(waiting), seconds(waited),
            seconds(exposed), percent(exposed, wall), seconds(critical), percent(critical, wall),
        )  # fmt: skip

    lines = []
    for step in steps:
        waits = synchronisation_of(step).waits
        assert waits is not None
        figures = (waits.waiting_ns, waits.waited_ns, waits.exposed_ns, waits.critical_ns)
        lines.append((step.name, step.wall_ns, step.all.ns, step.active_ns, *figures))
    rows = tuple(cells(*line) for line in lines)
    sums = [None if None in column else sum(column) for column in list(zip(*lines))[1:]]
    footer = (cells("TOTAL", *sums),) if len(lines) > 1 else ()
    columns = ("<Step", "Wall", "I/O", "active", "in MPI", "for I/O", "sec", "%wall", "sec", "%wall")
    rank = steps[0].choice.rank
    groups = (("", 2), ("All ranks" if rank is None else f"Rank {rank}", 2), ("waits, rank-sec", 2), ("exposed", 2), ("critical", 2))
    whose = () if rank is None else ("waits, exposed and critical are of all ranks",)
    remarks = LEGEND + whose + tuple(
        f"{step.name}: {synchronisation_of(step).waits.incomplete} collectives are left out: not all of their ranks have a record of them"
        for step in steps
        if synchronisation_of(step).waits.incomplete
    )
    return Table("Waits for I/O", columns, rows, groups, footer, remarks)


def _file_table(step: StepReport, waits: StepWaits, top: int | None) -> Table | None:
    """None when nothing costs as much as the table could show."""

    def cells(one: FileWaits) -> tuple[str, ...]:
        op = one.ops[0].op if one.ops else "-"
        return (
            seconds(one.critical_ns), percent(one.critical_ns, step.wall_ns), seconds(one.exposed_ns), seconds(one.waited_ns), seconds(one.io_ns),
            op, ranks(one.ranks), shown(one.file, step.data.cwd),
        )  # fmt: skip

    files = [one for one in waits.files[:top] if max(one.critical_ns, one.waited_ns) >= LEAST_NS]
    if not files:
        return None
    total = tuple(sum(getattr(one, key) for one in waits.files) for key in ("critical_ns", "exposed_ns", "waited_ns", "io_ns"))
    footer = (seconds(total[0]), percent(total[0], step.wall_ns), *map(seconds, total[1:]), "", "", "TOTAL")
    of = f" ({len(files)} of {len(waits.files)})" if len(files) < len(waits.files) else ""
    columns = ("critical", "%wall", "exposed", "waited", "I/O", "<mostly in", "<of ranks", "<File")
    return Table(f"Files that {step.name} waits for, seconds{of}", columns, tuple(map(cells, files)), footer=(footer,))


def ranks(found: tuple[int, ...]) -> str:
    """The first few, and how many there are; rising when all are shown."""
    if len(found) <= MOST_RANKS:
        return spans(tuple(sorted(found))) or "-"
    return f"{spans(found[:1])} and {len(found) - 1} more"


def _routine_table(step: StepReport, waits: StepWaits, top: int | None) -> Table:
    def cells(one: RoutineWaits) -> tuple[str, ...]:
        last = "-" if one.last is None else str(one.last)
        return (
            one.routine, shown(one.communicator, step.data.cwd) or "-", str(one.calls), seconds(one.waiting_ns),
            seconds(one.waited_ns), last, percent(one.last_times, one.times),
        )  # fmt: skip

    routines = waits.routines[:top]
    of = f" ({len(routines)} of {len(waits.routines)})" if len(routines) < len(waits.routines) else ""
    columns = ("<Routine", "<Communicator", "Calls", "waits", "for I/O", "rank", "times")
    groups = (("", 3), ("rank-sec", 2), ("mostly for", 2))
    remark = "mostly for: the rank that others waited for most often; its share of waits"
    return Table(f"MPI calls in which {step.name} waits{of}", columns, tuple(map(cells, routines)), groups, remarks=(remark,))


def wait_findings(step: StepReport) -> Iterator[str]:
    """Critical I/O time, when that is much."""
    waits = synchronisation_of(step).waits
    if waits is None or not waits.files or waits.critical_ns < CRITICAL_SHARE * step.wall_ns:
        return
    worst = waits.files[0]
    what = f"{worst.ops[0].op} " if worst.ops else ""
    who = f"rank {worst.ranks[0]}" if len(worst.ranks) == 1 else f"{len(worst.ranks)} ranks"
    yield (
        f"I/O delays the step by {short(waits.critical_ns / 1e9)} s ({percent(waits.critical_ns, step.wall_ns)} of the wall "
        f"time); the single file that delays it most, by {short(worst.critical_ns / 1e9)} s: "
        f"{what}of {who} on {shown(worst.file, step.data.cwd)}"
    )


def waits_json(report: Report) -> list[dict[str, Any]]:
    """Of the steps that recorded MPI."""
    made = []
    for step in report.steps:
        waits = synchronisation_of(step).waits
        if waits is not None:
            made.append({"step": step.name, "wall_s": step.wall_ns / 1e9, "io_s": step.all.ns / 1e9, **_waits(waits)})
    return made


def _waits(waits: StepWaits) -> dict[str, Any]:
    return {
        "ranks": waits.ranks, "nodes": waits.nodes, "collectives": waits.collectives, "incomplete": waits.incomplete,
        "waiting_s": waits.waiting_ns / 1e9, **costs_json(waits),
        "files": [
            {
                "file": one.file, "io_s": one.io_ns / 1e9, **costs_json(one), "ranks": list(one.ranks),
                "ops": {op.op: costs_json(op) for op in one.ops},
            }
            for one in waits.files
        ],
        "routines": [
            {
                "routine": one.routine, "communicator": one.communicator, "calls": one.calls, "waiting_s": one.waiting_ns / 1e9,
                "waited_s": one.waited_ns / 1e9, "last": one.last, "last_times": one.last_times, "times": one.times,
            }
            for one in waits.routines
        ],
    }  # fmt: skip


def costs_json(one: Any) -> dict[str, float]:
    return {"waited_s": one.waited_ns / 1e9, "exposed_s": one.exposed_ns / 1e9, "critical_s": one.critical_ns / 1e9}


WAITS = TableKind(
    name="waits",
    heading="Who waits for whose I/O",
    short_heading="Waits",
    shows="files and MPI calls that delay the run, and by how much",
    tables=lambda report, options: wait_tables(report, options.limit),
    why_empty="waits are recorded of MPI programs, at level trace without --no-mpi",
    page="early",
    json=lambda report, _: {"waits": waits_json(report)},
    has_rows=lambda report: any(synchronisation_of(step).waits is not None for step in report.steps),
)
