# SPDX-License-Identifier: Apache-2.0
"""Files by time or another key, over all steps of a report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weir.analysis.names import shown
from weir.report.file_systems.compute import mount_in
from weir.report.files.compute import FileTotals, chosen, files_of, files_of_rank
from weir.report.frame.build import Report
from weir.report.frame.declared import First
from weir.report.frame.figures import decimals, megabytes, milliseconds, whole
from weir.report.frame.kind import Options, TableKind
from weir.report.frame.table import Table

_OTHER_NAMES = 3  # of a file, that its line shows


def file_table(
    report: Report, rank: int | None, *, by: str = "time", top: int | None = 20,
    threshold_ns: int = 0, pattern: str | None = None
) -> Table:
    """Files by time, or another key, over all steps of the report."""
    every = files_of_rank(report, rank)
    files = chosen(every, by=by, top=top, threshold_ns=threshold_ns, pattern=pattern)
    rows = tuple(_file_cells(one, report.cwd) for one in files)
    who = report.who(rank)
    which = "Files" if threshold_ns == 0 else f"Files above {threshold_ns / 1e6:g} ms"
    of = f" ({len(files)} of {len(every)})" if len(files) < len(every) else ""
    return Table(f"{which}, {who}, by {by}{of}", ("MSEC", "MB", "RATE", "CALLS", "<File"), rows)


def _file_cells(one: FileTotals, cwd: str | None) -> tuple[str, ...]:
    msec, mb = milliseconds(one.ns), megabytes(one.bytes)
    return decimals(msec), decimals(mb), whole(one.rate_mb_s), str(one.calls), shown(one.file,
        cwd) + _other_names(one, cwd)


def _other_names(one: FileTotals, cwd: str | None) -> str:
    if not one.also:
        return ""
    more = f" and {len(one.also) - _OTHER_NAMES} more" if len(one.also) > _OTHER_NAMES else ""
    return f" (was {', '.join(shown(name, cwd) for name in one.also[:_OTHER_NAMES])}{more})"


def _tables(report: Report, options: Options) -> Iterator[Table]:
    for rank in report.shown_ranks if FILES.has_rows(report) else ():
        yield file_table(
            report, rank, by=options.by, top=options.file_limit, threshold_ns=options.threshold_ns,
            pattern=options.pattern
        )


def _files_json(report: Report, options: Options) -> dict[str, Any]:
    files = chosen(
        files_of(report), by=options.by, threshold_ns=options.threshold_ns, pattern=options.pattern
    )
    listed = files[: options.top or options.json_limit]
    total = min(len(files), options.top or len(files))
    return {"files": First([_file(one, report) for one in listed], total)}


def _file(one: FileTotals, report: Report) -> dict[str, Any]:
    mount = mount_in(report, one.file)
    return {
        "file": one.file,
        "also": list(one.also),
        "calls": one.calls,
        "bytes_read": one.bytes_read,
        "bytes_written": one.bytes_written,
        "seconds": one.ns / 1e9,
        "mount": mount.point,
        "file_system": mount.kind,
        "ops": {
            op.op: {"calls": op.calls, "bytes": op.bytes, "seconds": op.ns / 1e9,
                "below": op.below} for op in one.ops
        },
    }


FILES = TableKind(
    name="files",
    heading="Files",
    shows="single files by time; --by sorts by another key",
    tables=_tables,
    page="own",
    why_empty="level summary does not record which files the calls are on",
    has_rows=lambda report: any(step.keeps_names for step in report.steps),
    json=_files_json,
)
