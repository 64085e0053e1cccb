# SPDX-License-Identifier: Apache-2.0
"""Requests by size and by duration."""

from __future__ import annotations

from typing import Any

from weir.report.frame.build import Report
from weir.report.frame.figures import duration, size
from weir.report.frame.kind import TableKind
from weir.report.frame.table import Table
from weir.report.requests.compute import requests_of


def request_table(report: Report) -> Table:
    """Requests by size."""
    found = requests_of(report)
    has_below = found.of_below > 0
    rows = []
    for one in found.sizes:
        if not (one.reads or one.writes or one.below_reads or one.below_writes):
            continue
        last = "" if one.most_bytes is None else size(one.most_bytes + 1) if one.most_bytes else "1 B"
        label = "0 B" if one.most_bytes == 0 else f"{size(one.least_bytes)} - {last}"
        below = (str(one.below_reads), str(one.below_writes)) if has_below else ()
        rows.append((label, str(one.reads), str(one.writes), *below))
    remarks = []
    if found.small_share is not None:
        share = f"{100 * found.small_share:.1f} %"
        remarks.append(f"under 4 KiB: {found.small_app} of {found.of_app} requests of the application ({share})")
    if has_below:
        share = f"{100 * found.small_below / found.of_below:.1f} %"
        remarks.append(f"under 4 KiB: {found.small_below} of {found.of_below} system requests below calls of the application ({share})")
    columns = ("<Size", "Reads", "Writes") + (("below: reads", "writes") if has_below else ())
    return Table("Requests by size (from - below)", columns, tuple(rows), remarks=tuple(remarks))


def duration_table(report: Report) -> Table:
    """Requests by duration."""
    rows = tuple(
        (f"{duration(one.from_ns)} - {'' if one.to_ns is None else duration(one.to_ns)}", str(one.reads), str(one.writes))
        for one in requests_of(report).durations
        if one.reads or one.writes
    )
    return Table("Requests by duration", ("<Time", "Reads", "Writes"), rows)


def _requests(report: Report) -> dict[str, Any]:
    found = requests_of(report)
    return {
        "under_4k": {"calls": found.small_app, "of": found.of_app, "share": found.small_share},
        "under_4k_below": {"calls": found.small_below, "of": found.of_below},
        "sizes": [
            {
                "least_bytes": b.least_bytes, "most_bytes": b.most_bytes, "reads": b.reads, "writes": b.writes,
                "below_reads": b.below_reads, "below_writes": b.below_writes,
            }
            for b in found.sizes
        ],
        "durations": [
            {"from_ns": b.from_ns, "to_ns": b.to_ns, "reads": b.reads, "writes": b.writes} for b in found.durations
        ],
    }  # fmt: skip


REQUESTS = TableKind(
    name="requests",
    heading="Requests by size",
    shows="reads and writes by size",
    tables=lambda report, _: [request_table(report)],
    page="own",
    json=lambda report, _: {"requests": _requests(report)},
)

DURATIONS = TableKind(
    name="durations",
    heading="Requests by duration",
    shows="reads and writes by duration",
    tables=lambda report, _: [duration_table(report)],
    page="own",
)
