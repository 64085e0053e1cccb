# SPDX-License-Identifier: Apache-2.0
"""The section of the page that draws the file views of MPI-IO."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from weir.analysis.ranks import rank_list
from weir.report.frame.build import Report
from weir.report.frame.section import Section, rendered
from weir.report.frame.table import Table
from weir.report.mpi_io.view_table import FILE_VIEWS, chosen, figures, title_of
from weir.report.mpi_io.views import FileView, ViewGroup, view_groups

MOST_CHARTS = 12
MOST_ROWS = 64
MOST_BLOCKS = 400  # of a row: more are drawn as shares of CELLS parts
CELLS = 400
# In the units of the SVG, which are pixels at its usual width.
WIDTH, LEFT, RIGHT, ROW = 900, 90, 10, 16


@dataclass(frozen=True)
class Mark:
    """A rectangle. share: of its bytes that the rank sees; 0: not recorded."""

    left: float
    width: float
    text: str
    share: float = 1.0


@dataclass(frozen=True)
class Row:
    top: float
    label: str
    ranks: str
    marks: list[Mark]


@dataclass(frozen=True)
class Chart:
    title: str
    label: str
    rows: list[Row]
    ticks: list[tuple[float, str]]
    table: Table
    remark: str
    width: int = WIDTH
    left: int = LEFT
    right: int = WIDTH - RIGHT
    row: int = ROW

    @property
    def bottom(self) -> int:
        return len(self.rows) * ROW


def file_views(report: Report) -> Section | None:
    """None where every rank sees all bytes of the files."""
    groups = [one for one in view_groups(report) if not one.is_plain
        and all(view.is_drawable for view, _ in one.by_rank) and one.range[1] > one.range[0]]
    if not groups:
        return None
    charts = [_chart(one, report.cwd) for one in groups[:MOST_CHARTS]]
    return Section(FILE_VIEWS.name, FILE_VIEWS.heading, rendered("views.j2", charts=charts,
        every=len(groups)))


def _chart(group: ViewGroup, cwd: str | None) -> Chart:
    begin, end = group.range
    scale = (WIDTH - LEFT - RIGHT) / (end - begin)
    some = chosen(group, MOST_ROWS)
    rows = [
        Row(i * ROW, _short(rank_list(ranks)), rank_list(ranks), list(_marks(view, begin, end,
            scale)))
        for i, (view, ranks) in enumerate(some)
    ]
    places = [begin + (end - begin) * i // 4 for i in range(5)]
    ticks = [(LEFT + (at - begin) * scale, f"{at:,}") for at in places]
    title = title_of(group, cwd)
    remark = f"{len(some)} of {len(group.by_rank)} different views: the first ones and the last" \
        if len(some) < len(group.by_rank) else ""
    return Chart(title, f"{title}: bytes {begin} to {end} by rank", rows, ticks, figures(group,
        MOST_ROWS), remark)


def _short(text: str) -> str:
    return text if len(text) <= 12 else text[:9] + "..."


def _marks(view: FileView, begin: int, end: int, scale: float) -> Iterator[Mark]:
    spans = view.spans(begin, end, MOST_BLOCKS)
    if spans is not None:
        for offset, length in spans:
            stop = min(offset + length, end)
            yield Mark(LEFT + (offset - begin) * scale, (stop - offset) * scale,
                f"offset {offset:,}, {length:,} bytes")
        return
    edges = np.unique(np.linspace(begin, end, CELLS + 1).astype(np.int64))
    lengths = np.diff(edges)
    shares = np.where(view.unrecorded(edges) > 0, -1.0, view.seen(edges) / lengths)
    bounds = np.flatnonzero(np.r_[True, np.diff(shares) != 0, True])
    for first, last in zip(bounds, bounds[1:]):
        share, low, high = float(shares[first]), int(edges[first]), int(edges[last])
        if share:
            what = "not recorded" if share < 0 else f"{share:.0%} of them"
            yield Mark(LEFT + (low - begin) * scale, (high - low) * scale,
                f"bytes {low:,} to {high:,}: {what}", max(share, 0.0))
