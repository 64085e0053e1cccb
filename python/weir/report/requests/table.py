# SPDX-License-Identifier: Apache-2.0
"""Requests by size and by duration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weir.report.frame.build import Report
from weir.report.frame.declared import Field, Listing
from weir.report.frame.figures import duration, size
from weir.report.frame.kind import TableKind
from weir.report.frame.table import Table
from weir.report.requests.compute import SizeBin, requests_of


def _size(one: SizeBin) -> str:
    last = "" if one.most_bytes is None else size(one.most_bytes + 1) if one.most_bytes else "1 B"
    return "0 B" if one.most_bytes == 0 else f"{size(one.least_bytes)} - {last}"


def _sizes(report: Report) -> list[dict[str, Any]]:
    return [vars(one) | {"size": _size(one)} for one in requests_of(report).sizes]


def _durations(report: Report) -> list[dict[str, Any]]:
    return [
        vars(one)
        | {"time": f"{duration(one.from_ns)} - {'' if one.to_ns is None else duration(one.to_ns)}"}
        for one in requests_of(report).durations
    ]


SIZES = Listing(
    "request_sizes",
    "reads and writes by size, in powers of two",
    (
        Field("size", "text", "", "from - below", "Size"),
        Field("least_bytes", "int", "bytes", "of the smallest requests of the line"),
        Field("most_bytes", "int?", "bytes", "of the largest; null: no limit"),
        Field("reads", "int", "", "reads of the application", "Reads"),
        Field("writes", "int", "", "writes of the application", "Writes"),
        Field("below_reads", "int", "", "reads that a library or the system made for a call",
              "below: reads"),
        Field("below_writes", "int", "", "writes, likewise", "writes"),
    ),
    _sizes,
)
TIMES = Listing(
    "request_durations",
    "reads and writes of the application by duration",
    (
        Field("time", "text", "", "from - below", "Time"),
        Field("from_ns", "int", "ns", "of the shortest requests of the line", key="from_ns"),
        Field("to_ns", "int?", "ns", "of the longest; null: no limit", key="to_ns"),
        Field("reads", "int", "", "reads of the application", "Reads"),
        Field("writes", "int", "", "writes of the application", "Writes"),
    ),
    _durations,
)


def _table(report: Report, title: str, listing: Listing, remarks: Iterator[str]) -> Table:
    counts = [one.name for one in listing.columns if one.name.endswith(("reads", "writes"))]
    used = [row for row in listing.rows(report) if any(row[name] for name in counts)]
    without = () if requests_of(report).of_below else ("below_reads", "below_writes")
    return listing.table(title, used, without=without, remarks=remarks)


def _remarks(report: Report) -> Iterator[str]:
    found = requests_of(report)
    for small, of, which in (
        (found.small_app, found.of_app, "requests of the application"),
        (found.small_below, found.of_below, "system requests below calls of the application"),
    ):
        if of:
            yield f"under 4 KiB: {small} of {of} {which} ({100 * small / of:.1f} %)"


def _requests(report: Report) -> dict[str, Any]:
    found = requests_of(report)
    return {
        "under_4k": {"calls": found.small_app, "of": found.of_app, "share": found.small_share},
        "under_4k_below": {"calls": found.small_below, "of": found.of_below},
        "sizes": SIZES.json(_sizes(report)),
        "durations": TIMES.json(_durations(report)),
    }


REQUESTS = TableKind(
    name="requests",
    heading="Requests by size",
    shows="reads and writes by size",
    tables=lambda report, _: [
        _table(report, "Requests by size (from - below)", SIZES, _remarks(report))
    ],
    page="own",
    json=lambda report, _: {"requests": _requests(report)},
    listings=(SIZES,),
)

DURATIONS = TableKind(
    name="durations",
    heading="Requests by duration",
    shows="reads and writes by duration",
    tables=lambda report, _: [_table(report, "Requests by duration", TIMES, iter(()))],
    page="own",
    listings=(TIMES,),
)
