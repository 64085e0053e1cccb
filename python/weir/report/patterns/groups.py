# SPDX-License-Identifier: Apache-2.0
"""Access patterns of files that belong together, as the table of files has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from weir.report.files.groups import file_groups
from weir.report.frame.build import Report
from weir.report.frame.figures import percent
from weir.report.frame.table import Table
from weir.report.patterns.compute import WAYS, Rows

_PARTS = ("adjacent", "strided", "backward", "random", "unknown")
SUMMED = ("calls", "bytes", "sequential", "consecutive", "first", *_PARTS, "off_block", "again",
    "switches", "ns")  # fmt: skip
_COLUMNS = ("Calls", "MB", "files", "adj.", "strided", "back", "random", "?", "unal.", "switch",
            "<", "<Files")  # fmt: skip


def group_rows(report: Report, rows: Rows) -> list[dict[str, Any]]:
    """Of those of these rows whose files have others of one pattern beside them, most bytes first:
    sums by pattern (`files`) and direction, and how many files these are (`count`)."""
    groups = [one for one in file_groups(report) if one.files > 1]
    group_of = {path: at for at, one in enumerate(groups) for path in one.members}
    name, way, *figures = rows.columns("name", "way", *SUMMED)
    known, place = np.unique(name, return_inverse=True)
    group = np.array([group_of.get(report.names[one], -1) for one in known.tolist()], np.int64)
    key = 2 * group[place.reshape(-1)] + way
    keys, at = np.unique(key[key >= 0], return_inverse=True)
    names = max(len(report.names.names), 1)
    its = np.unique(at.reshape(-1) * names + name[key >= 0]) // names  # each file once
    count = np.bincount(its, minlength=len(keys))
    sums = np.zeros((len(figures), len(keys)), np.int64)
    for into, column in zip(sums, figures):
        np.add.at(into, at.reshape(-1), column[key >= 0])
    order = np.lexsort((keys, -sums[SUMMED.index("bytes")])).tolist()
    return [
        {"files": groups[keys[one] // 2].name, "way": WAYS[keys[one] % 2], "count": int(count[one]),
            **dict(zip(SUMMED, sums[:, one].tolist()))}
        for one in order
    ]  # fmt: skip


def group_table(report: Report, rows: Rows, limit: int | None) -> Table | None:
    """None: no files belong together."""
    every = group_rows(report, rows)
    listed = every[:limit]
    of = f" ({len(listed)} of {len(every)})" if len(listed) < len(every) else ""
    title = f"Access patterns of files that belong together by MB{of}"
    return Table(title, _COLUMNS, tuple(map(_cells, listed))) if every else None


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    calls = row["calls"]
    return (
        str(calls), f"{row['bytes'] / 1e6:.3f}", str(row["count"]),
        *(percent(row[part], calls) for part in (*_PARTS, "off_block")), str(row["switches"]),
        row["way"][0], row["files"],
    )  # fmt: skip
