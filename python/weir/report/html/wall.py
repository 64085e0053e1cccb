# SPDX-License-Identifier: Apache-2.0
"""The section of the page with the wall time of each rank as a stacked bar."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from weir.report.frame.amounts import number, seconds, share
from weir.report.frame.build import Report, StepReport
from weir.report.frame.kind import Options
from weir.report.frame.section import Section, rendered
from weir.report.frame.table import Table
from weir.report.html.ranks import LEGEND, Row, stacked
from weir.report.wall.compute import PARTS
from weir.report.wall.table import WALL, by_node, by_rank, times_of

MOST_BARS = 64  # of a step: of more ranks, a bar is the mean of those of a node
_LEGEND = tuple((kind, f"{word}: {meaning}") for kind, word, meaning in LEGEND)


@dataclass(frozen=True)
class Chart:
    """The bars of one step."""

    title: str
    label: str
    bars: list[Row]


def wall_time(report: Report) -> Section | None:
    """None where no step has it."""
    charts = [one for step in report.steps for one in _charts(step, len(report.steps) > 1)]
    if not charts:
        return None
    tables = [t for t in WALL.tables(report, Options(("wall",))) if isinstance(t, Table)]
    body = rendered("wall.j2", legend=_LEGEND, charts=charts, tables=tables)
    return Section("wall", WALL.heading, body, brief=WALL.short_heading)


def _charts(step: StepReport, has_title: bool) -> Iterator[Chart]:
    times = times_of(step)
    if times is None or not times.ranks:
        return
    what = f"each rank of {step.name}"
    if len(times.ranks) <= MOST_BARS:
        rows: Sequence[dict[str, Any]] = [
            {**row, "label": row["rank"].title, "of": 1} for row in by_rank(step)
        ]
    else:
        nodes = by_node(step, times)
        most = sorted(nodes, key=lambda row: row["computing_share"])[:MOST_BARS]
        kept = {id(row) for row in most}
        rows = [
            {**row, "label": f"{row['node']}, {number(row['ranks'])} ranks", "of": row["ranks"]}
            for row in nodes
            if id(row) in kept
        ]
        of = f" ({MOST_BARS} of {len(nodes)}: those that compute least)" * (len(nodes) > MOST_BARS)
        what = f"the mean rank of each node of {step.name}{of}"
    longest = max(row["rank_ns"] / row["of"] for row in rows) or 1
    bars = [_bar(row, longest) for row in rows]
    yield Chart(what[0].upper() + what[1:] if has_title else "", f"Wall time of {what}", bars)


def _bar(row: dict[str, Any], longest: float) -> Row:
    times = [row[part] / row["of"] for part in PARTS]
    whole = sum(times)
    figure = f"{seconds(whole / 1e9)}, {share(times[1] + times[2], whole)} in or for I/O"
    return stacked(row["label"], times, longest, figure)
