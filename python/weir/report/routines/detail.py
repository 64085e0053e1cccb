# SPDX-License-Identifier: Apache-2.0
"""Detail of each file of a rank, line by line as the reference prints it."""

from __future__ import annotations

from collections.abc import Iterator

from weir.analysis.names import matches, shown
from weir.report.frame.build import Report, StepReport
from weir.report.frame.figures import megabytes, milliseconds, rate
from weir.report.frame.kind import Options, TableKind
from weir.report.routines.compute import FileDetail, Routine, details_of


def detail_lines(report: Report, step: StepReport, rank: int | None, *, pattern: str | None = None,
        top: int | None = None) -> Iterator[str]:
    """Lines of the files of one rank (None: of every rank) in one step; at most `top` files, the
    slowest ones."""
    details = [one for one in details_of(step, rank) if pattern is None
        or matches(report.names[one.name], pattern)]
    every = len(details)
    if top is not None and top < every:
        slowest = sorted(details, key=lambda one: -one.table.total.ns)[:top]
        kept = {id(one) for one in slowest}
        details = [one for one in details if id(one) in kept]
    for one in details:
        label = report.names.ranks[one.rank].label
        yield from _file_lines(one, label, shown(report.names[one.name], step.data.cwd))
        yield ""
    if len(details) < every:
        yield f"({len(details)} of {every} files: the slowest; --tables detail --top 0 prints all)"


def _file_lines(one: FileDetail, rank: str, name: str) -> Iterator[str]:
    head = f"{rank}:weir Detail"
    yield f"{head} File={name}"
    width = max([7, *(len(row.routine) + 1 for row in (*one.table.rows, *one.table.below))])
    yield f"{head} {'Routine':<{width}} {'Calls':>6} {'MB':>8} {'MSEC':>9} {'MB/s':>8}"
    for row in one.table.rows:
        yield f"{head} {_routine(row, width)}"
    for row in one.table.below:
        yield f"{head} {_routine(row, width)}  (below, system)"


def _routine(row: Routine, width: int) -> str:
    msec = milliseconds(row.ns)
    return (
        f"{row.routine + ':':<{width}} {row.calls:>6} {megabytes(row.bytes):>8.3f} {msec:>9.3f} "
        f"{rate(row.bytes, row.ns):>8.3f}"
    )


def _tables(report: Report, options: Options) -> Iterator[str]:
    rank = report.shown_ranks[0]
    for step in (one for one in report.steps if one.keeps_names):
        who = "every rank" if rank is None else step.who(rank)
        yield f"\nDetail for {step.name}, {who}\n"
        yield from detail_lines(report, step, rank, pattern=options.pattern,
            top=options.detail_limit)


DETAIL = TableKind(
    name="detail",
    heading="Detail of each file",
    shows="each file of a rank with all its routines, line by line",
    why_empty="level summary does not record which files the calls are on",
    has_rows=lambda report: any(step.keeps_names for step in report.steps),
    tables=_tables,
    page="own",
)
