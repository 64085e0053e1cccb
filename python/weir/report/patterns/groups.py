# SPDX-License-Identifier: Apache-2.0
"""Access patterns of files that belong together, as the table of files has them."""

from __future__ import annotations

import numpy as np

from weir.report.files.groups import file_groups
from weir.report.frame.build import Report
from weir.report.frame.figures import percent
from weir.report.frame.table import Table
from weir.report.patterns.compute import WAYS, Rows

_PARTS = ("adjacent", "strided", "backward", "random", "unknown")
_SUMMED = ("calls", "bytes", *_PARTS, "off_block", "switches")
_COLUMNS = ("Calls", "MB", "files", "adj.", "strided", "back", "random", "?", "unal.", "switch",
            "<", "<Files")  # fmt: skip


def group_table(report: Report, rows: Rows, limit: int | None) -> Table | None:
    """Of those of these rows whose files have others of one pattern beside them, most bytes first;
    None: there are none."""
    groups = [one for one in file_groups(report) if one.files > 1]
    group_of = {path: at for at, one in enumerate(groups) for path in one.members}
    name, way, *figures = rows.columns("name", "way", *_SUMMED)
    known, place = np.unique(name, return_inverse=True)
    group = np.array([group_of.get(report.names[one], -1) for one in known.tolist()], np.int64)
    key = 2 * group[place.reshape(-1)] + way
    keys, at, files = np.unique(key[key >= 0], return_inverse=True, return_counts=True)
    if not len(keys):
        return None
    sums = np.zeros((len(figures), len(keys)), np.int64)
    for into, column in zip(sums, figures):
        np.add.at(into, at.reshape(-1), column[key >= 0])
    order = np.lexsort((keys, -sums[1]))
    listed = order[:limit]
    of = f" ({len(listed)} of {len(order)})" if len(listed) < len(order) else ""
    return Table(
        f"Access patterns of files that belong together by MB{of}", _COLUMNS,
        tuple(_cells(dict(zip(_SUMMED, sums[:, one].tolist())), int(files[one]),
            WAYS[keys[one] % 2], groups[keys[one] // 2].name) for one in listed.tolist()),
    )  # fmt: skip


def _cells(row: dict[str, int], files: int, way: str, name: str) -> tuple[str, ...]:
    calls = row["calls"]
    return (
        str(calls), f"{row['bytes'] / 1e6:.3f}", str(files),
        *(percent(row[part], calls) for part in (*_PARTS, "off_block")), str(row["switches"]),
        way[0], name,
    )  # fmt: skip
