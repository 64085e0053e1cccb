# SPDX-License-Identifier: Apache-2.0
"""The summary of routines of a step, of one rank or of all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from weir.report.frame.build import Report, StepReport
from weir.report.frame.figures import decimals, megabytes, milliseconds, rate
from weir.report.frame.kind import Options, TableKind
from weir.report.frame.table import Table
from weir.report.routines.compute import Routine, RoutineTable, routines_of


def summary_table(step: StepReport, rank: int | None) -> Table:
    """Routines of one rank (None: of all) in one step."""
    table = routines_of(step, rank)

    def cells(row: Routine) -> tuple[str, ...]:
        figures = (megabytes(row.bytes), milliseconds(row.ns), rate(row.bytes, row.ns))
        return (row.routine, str(row.calls), *map(decimals, figures))

    ranks = sum(one >= 0 for one in step.ranks)
    everyone = f"all {ranks} ranks" + (" and other processes" if -1 in step.ranks else "")
    who = everyone if rank is None else f"rank {rank}"
    remarks = _below_remarks(table)
    title = f"Summary for {step.name}, {who}"
    columns = ("<Routine", "Calls", "MB", "msec", "MB/s")
    return Table(title, columns, tuple(map(cells, table.rows)), footer=(cells(table.total),), remarks=remarks)


def _below_remarks(table: RoutineTable) -> tuple[str, ...]:
    if not table.below:
        return ()
    lines = [
        f"{r.routine:<12} {r.calls:>9} {megabytes(r.bytes):>11.3f} {milliseconds(r.ns):>11.3f} {rate(r.bytes, r.ns):>9.0f}"
        for r in table.below
    ]
    return ("below Fortran statements, not in TOTAL:", *lines)


def _tables(report: Report, _: Options) -> Iterator[Table]:
    for step in report.steps:
        for rank in report.shown_ranks:
            if rank is None or rank in step.ranks:
                yield summary_table(step, rank)


def routines_json(table: RoutineTable) -> dict[str, Any]:
    def listed(rows: Sequence) -> list[dict[str, Any]]:
        return [{"routine": r.routine, "calls": r.calls, "bytes": r.bytes, "seconds": r.ns / 1e9} for r in rows]

    return {"rows": listed(table.rows), "total": listed([table.total])[0], "below": listed(table.below)}


SUMMARY = TableKind(
    name="summary",
    heading="By routine",
    short_heading="Routines",
    shows="calls, bytes and time of each routine (read, fwrite, ...)",
    tables=_tables,
    page="last",
)
