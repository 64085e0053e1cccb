# SPDX-License-Identifier: Apache-2.0
"""Calls that failed and usually do not, as a table and as a sentence for the first screen."""

from __future__ import annotations

import os
from collections.abc import Iterator

from weir.analysis.names import shown
from weir.report.failures.compute import Failure, failures_of
from weir.report.frame.amounts import counted, number
from weir.report.frame.build import Report
from weir.report.frame.declared import Field, Listing
from weir.report.frame.kind import Options, TableKind
from weir.report.frame.table import Table

MOST_NAMED = 3
_UNKNOWN = "the level keeps no errno"

LISTING = Listing(
    "failures",
    "calls on files that failed and usually do not: without those that look for files",
    (
        Field("step", "text", "", "name of the step", "Step"),
        Field("calls", "int", "", "calls that failed alike", "Calls"),
        Field("op", "text", "", "operation", "Routine"),
        Field("error", "int32?", "", "errno; null: known at level trace alone"),
        Field("reason", "text", "", "text of errno", "Error"),
        Field("file", "path?", "", "path of the file; null: not known", "File"),
    ),
    lambda report: [_row(one) for one in failures_of(report)],
)


def _reason(one: Failure) -> str:
    return os.strerror(one.error) if one.error else _UNKNOWN


def _row(one: Failure) -> dict[str, object]:
    return {"step": one.step, "calls": one.calls, "op": one.op, "error": one.error,
        "reason": _reason(one), "file": one.file}


def failure_statement(report: Report) -> str | None:
    """`1 write of big failed: No space left on device`"""
    found = failures_of(report)
    if not found:
        return None
    said = [_sentence(one, report.cwd) for one in found[:MOST_NAMED]]
    if len(found) > MOST_NAMED:
        said.append(f"{counted(sum(one.calls for one in found[MOST_NAMED:]), 'more call')} failed")
    if not report.keeps_names:
        said[-1] += "; they may be on pipes, as level summary does not record files"
    elif any(one.error is None for one in found):
        said[-1] += "; level trace records the reasons"
    return f"{'; '.join(said)} (--tables failures)"


def _sentence(one: Failure, cwd: str | None) -> str:
    what = f"1 {one.op}" if one.calls == 1 else f"{number(one.calls)} calls of {one.op}"
    of = "of" if one.calls == 1 else "on"
    where = "" if one.file is None else f" {of} {shown(one.file, cwd)}"
    return f"{what}{where} failed" + (f": {_reason(one)}" if one.error else "")


def _tables(report: Report, options: Options) -> Iterator[Table]:
    if found := failures_of(report):
        without = () if len(report.steps) > 1 else ("step",)
        yield LISTING.table("Calls that failed", [_row(one) for one in found], cwd=report.cwd,
            top=options.limit, without=without,
            remarks=("without calls that look for files (ENOENT), and those that a file system "
                     "does not offer",))


FAILURES = TableKind(
    name="failures",
    heading="Calls that failed",
    short_heading="Failures",
    shows="calls that failed and usually do not, with the reason",
    tables=_tables,
    why_empty="no call failed but those that look for files",
    json=lambda report, _: {"failures": LISTING.json(LISTING.rows(report))},
    has_rows=lambda report: bool(failures_of(report)),
    listings=(LISTING,),
)
