# SPDX-License-Identifier: Apache-2.0
"""The report as JSON: a stable interface, keys are only ever added (docs/reference/tables.md).
Counts and bytes are exact."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weir.analysis.totals import Totals
from weir.report.findings.registry import findings_of
from weir.report.frame.amounts import plain
from weir.report.frame.build import Report
from weir.report.frame.excluded import excluded_of
from weir.report.frame.kind import Options
from weir.report.notes import notes, unseen_statement
from weir.report.processes.compute import is_complete, unseen_of
from weir.report.registry import KINDS
from weir.report.steps.table import totals_json


def report_json(report: Report, options: Options = Options()) -> dict[str, Any]:
    """What is known of the run as a whole, and the keys of every table that `all` prints or that is
    named. Rows are not limited, but for files, which by, top, threshold_ns and pattern choose as in
    weir.report.files.compute.chosen."""
    not_files, launchers, segments = zip(*(step.left_out()
        for step in report.steps)) if report.steps else ((), (), ())
    found: dict[str, Any] = {
        "format": 1,
        "unseen": _unseen(report),
        "run": report.path,
        "total": {
            "wall_s": report.wall_ns / 1e9,
            "rank0": totals_json(report.rank0),
            "all": totals_json(report.all),
            "active_s": None if report.active_ns is None else report.active_ns / 1e9,
            **totals_json(report.all),
        },
        "lost_events": report.lost_events,
        "complete": is_complete(report),
        "notes": notes(report),
        "findings": [{"name": n, "sentence": plain(text)} for n, text in findings_of(report)],
        "problems": [
            {"file": p.path, "byte": p.offset, "reason": p.reason, "count": p.count}
            for p in report.problems
        ],
        "not_files": _summed(not_files),
        "launchers": _summed(launchers),
        "excluded": _excluded(report),
        "mpi_segments": {"files": sum(t.files or 0 for t in segments), **_summed(segments)},
    }
    for kind in KINDS:
        if kind.json is not None and (kind.in_all or options.names(kind)):
            found |= kind.json(report, options)
    return found


def _summed(parts: Iterable[Totals]) -> dict[str, Any]:
    every = list(parts)
    calls, moved, ns = (sum(getattr(t, key) for t in every) for key in ("calls", "bytes", "ns"))
    return {"calls": calls, "bytes": moved, "seconds": ns / 1e9}


def _excluded(report: Report) -> dict[str, Any]:
    """Files that are left out: how many, calls, bytes and time, and the words that they are left
    out by."""
    found = excluded_of(report)
    return {"files": found.files, **_summed([found.totals]), "words": dict(found.words)}


def _unseen(report: Report) -> dict[str, Any]:
    """What the kernel counted and nobody saw; statement: the first line of the report where it is
    not the whole truth."""
    steps = [(step.name, unseen_of(step)) for step in report.steps]
    return {
        "statement": unseen_statement(report),
        "bytes": sum(one.bytes for _, one in steps),
        "kernel_bytes": sum(one.counted for _, one in steps),
        "processes": [
            {"step": name, "pid": p.pid, "command": p.command, "bytes": p.unseen, "way": p.way}
            for name, one in steps for p in one.processes
        ],
        "programs": [
            {
                "step": name, "node": p.node, "pid": p.pid, "rank": p.rank, "program": p.program,
                "reason": p.reason, "signal": p.signal or None, "group_bytes": group.bytes,
                "group_pids": [other.pid for other in group.programs], "matters": group.matters,
            }
            for name, one in steps for group in one.groups for p in group.programs
        ],
    }  # fmt: skip
