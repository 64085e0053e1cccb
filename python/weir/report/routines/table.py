# SPDX-License-Identifier: Apache-2.0
"""The summary of routines of a step, of one rank or of all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weir.report.frame.build import Report, StepReport
from weir.report.frame.declared import Field, Listing
from weir.report.frame.figures import decimals, megabytes, milliseconds, rate
from weir.report.frame.kind import Options, TableKind
from weir.report.frame.table import Table
from weir.report.routines.compute import Routine, RoutineTable, routines_of

LISTING = Listing(
    "routines",
    "calls, bytes and time of each routine, of all ranks, as in `weir report --tables summary`",
    (
        Field("step", "text", "", "name of the step", key=None),
        Field("routine", "text", "", "read, fwrite, ...", "Routine", is_whole=True),
        Field("calls", "int", "", "calls of the application; of `below`: of libgfortran", "Calls"),
        Field("bytes", "int", "bytes",
              "moved by them; of a Fortran statement by the system calls below it", "MB",
              show=lambda count: decimals(megabytes(count))),
        Field("ns", "int", "ns", "durations of the calls added up", "msec",
              show=lambda ns: decimals(milliseconds(ns))),
        Field("mb_per_s", "real", "MB/s", "bytes by these seconds", "MB/s", show=decimals,
              key=None),
        Field("below", "bool", "",
              "system calls below Fortran statements, which the lines of these have already",
              key=None),
    ),
    lambda report: [
        row | {"step": step.name, "below": is_below}
        for step in report.steps
        for is_below, part in zip((False, True), _parts(routines_of(step)))
        for row in map(_row, part)
    ],
)  # fmt: skip


def _parts(table: RoutineTable) -> tuple[tuple[Routine, ...], tuple[Routine, ...]]:
    return table.rows, table.below


def _row(one: Routine) -> dict[str, Any]:
    return vars(one) | {"mb_per_s": rate(one.bytes, one.ns)}


def summary_table(step: StepReport, rank: int | None) -> Table:
    """Routines of one rank (None: of all) in one step."""
    table = routines_of(step, rank)
    title = f"Summary for {step.name}, {step.who(rank)}"
    rows, total = [_row(one) for one in table.rows], _row(table.total)
    return LISTING.table(title, rows, footer=[total], remarks=_below_remarks(table))


def _below_remarks(table: RoutineTable) -> Iterator[str]:
    if table.below:
        yield "below Fortran statements, not in TOTAL:"
    for one in table.below:
        mb, msec = megabytes(one.bytes), milliseconds(one.ns)
        figures = f"{mb:>11.3f} {msec:>11.3f} {rate(one.bytes, one.ns):>9.0f}"
        yield f"{one.routine:<12} {one.calls:>9} {figures}"


def _tables(report: Report, _: Options) -> Iterator[Table]:
    for step in report.steps:
        for rank in report.shown_ranks:
            if rank is None or step.has_rank(rank):
                yield summary_table(step, rank)


def routines_json(table: RoutineTable) -> dict[str, Any]:
    rows, below = (LISTING.json(map(_row, part)) for part in _parts(table))
    return {"rows": rows, "total": LISTING.json([_row(table.total)])[0], "below": below}


SUMMARY = TableKind(
    name="summary",
    heading="By routine",
    short_heading="Routines",
    shows="calls, bytes and time of each routine (read, fwrite, ...)",
    tables=_tables,
    page="last",
    listings=(LISTING,),
)
