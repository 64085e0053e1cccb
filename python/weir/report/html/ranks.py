# SPDX-License-Identifier: Apache-2.0
"""The picture of the first screen with the wall time of each rank as a stacked bar, by node.

The page has the bars of a few ranks, or of nodes, as they stand; the script draws those of all
ranks, sorted by any part, from the same figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weir.analysis.ranks import RankName
from weir.report.frame.amounts import number, seconds, share
from weir.report.frame.build import Report, StepReport
from weir.report.sentences import count
from weir.report.wall.compute import PARTS
from weir.report.wall.table import Times, times_of

MOST_HIGH = 6
MOST_ROWS = 16  # in the page without its script, and on paper
# By part: the class of its colour, its word, and what the word means.
LEGEND = (
    ("wall", "computing", "in neither I/O nor MPI"),
    ("active", "I/O", "in I/O on files"),
    ("critical", "waiting for I/O", "in MPI, for a rank that is in I/O"),
    ("waiting", "imbalance", "in MPI, for a rank that computes"),
    ("other", "communication", "the rest of the time in MPI"),
)
_WITHOUT_CALLS = (LEGEND[0][0], "not in I/O", "computing, waiting and communication")


@dataclass(frozen=True)
class Row:
    """A stacked bar. parts: class and per cent of the longest row; text: all figures."""

    label: str
    parts: tuple[tuple[str, float], ...]
    text: str
    figure: str


@dataclass(frozen=True)
class RankPicture:
    """groups: name of the node, empty where all rows are of one kind, and its rows. data: what the
    script draws from."""

    title: str
    which: str
    legend: tuple[tuple[str, str, str], ...]
    groups: list[tuple[str, list[Row]]]
    data: dict[str, Any]

    @property
    def is_few(self) -> bool:
        """Whether there is room for high bars."""
        return sum(len(rows) for _, rows in self.groups) <= MOST_HIGH


@dataclass(frozen=True, slots=True)
class _Line:
    """Time of one rank, of all steps, by part of the legend."""

    node: str
    rank: RankName
    ns: tuple[int, ...]


def rank_picture(report: Report) -> RankPicture | None:
    """None where no rank is known."""
    times, legend = [one for step in report.steps if (one := times_of(step)) is not None], LEGEND
    if not any(one.ranks for one in times):
        times = [_io_alone(step) for step in report.steps]
        legend = (_WITHOUT_CALLS, LEGEND[1])
    lines = _lines(times)
    if not lines:
        return None
    used = [at for at in range(len(legend)) if at < 2 or any(line.ns[at] for line in lines)]
    lines = [_Line(one.node, one.rank, tuple(one.ns[at] for at in used)) for one in lines]
    legend = tuple(legend[at] for at in used)
    nodes = sorted({line.node for line in lines})
    at = {node: i for i, node in enumerate(nodes)}
    data = {
        "words": [[kind, word] for kind, word, _ in legend],
        "nodes": nodes,
        "ranks": [
            [line.rank.for_page, at[line.node], *(ns // 1000 for ns in line.ns)] for line in lines
        ],
    }
    groups, which = _still(lines, nodes, legend)
    return RankPicture("Where the wall time of the ranks goes", which, legend, groups, data)


def _lines(steps: Sequence[Times]) -> list[_Line]:
    """Times of all steps, added up by node and rank."""
    sums: dict[tuple[str, RankName], tuple[int, ...]] = {}
    for times in steps:
        for node, rank, ns in zip(times.nodes, times.ranks, times.ns[:, : len(PARTS)].tolist()):
            before = sums.get((node, rank))
            sums[node, rank] = tuple(ns if before is None else map(sum, zip(before, ns)))
    return [_Line(node, rank, ns) for (node, rank), ns in sums.items()]


def _io_alone(step: StepReport) -> Times:
    """Where calls of MPI, or single calls, were not recorded: the I/O of each rank, and the rest
    of the wall time."""
    node_of: dict[int, str] = {}
    for member in step.data.members:
        node_of.setdefault(member.number, step.data.files[member.file].node)
    found = {rank: one.ns for rank, one in step.by_rank.items()
        if rank >= 0 or not step.data.worlds}
    io_ns = np.array([*found.values()], np.int64)
    ns = np.zeros((len(found), len(PARTS)), np.int64)
    ns[:, 0], ns[:, 1] = np.maximum(0, step.wall_ns - io_ns), np.minimum(io_ns, step.wall_ns)
    return Times([step.names.ranks[rank] for rank in found], [node_of[rank] for rank in found], ns)


def _still(lines: list[_Line], nodes: list[str], legend: tuple[tuple[str, str, str], ...]
        ) -> tuple[list[tuple[str, list[Row]]], str]:
    """At most MOST_ROWS rows: ranks under their nodes, else the mean of each node, else the nodes
    that compute least."""
    if len(lines) <= MOST_ROWS:
        longest = max(sum(line.ns) for line in lines) or 1
        made = [
            (node if len(nodes) > 1 else "",
                [_row(one.rank.title, one.ns, longest, legend) for one in lines
                    if one.node == node])
            for node in nodes
        ]
        return made, "each rank" if len(lines) > 1 else ""
    means = list(_means(lines, nodes))
    longest = max(sum(ns) for _, _, ns in means) or 1
    kept = sorted(means, key=lambda one: one[2][0] / (sum(one[2]) or 1))[:MOST_ROWS]
    named = {name for name, _, _ in kept}
    rows = [
        _row(f"{name}, {count(ranks, 'rank')}", ns, longest, legend)
        for name, ranks, ns in means
        if name in named
    ]
    of = f" ({len(rows)} of {number(len(means))} nodes: those that compute least)"
    return [("", rows)], "mean rank of each node" + of * (len(rows) < len(means))


def _means(lines: list[_Line], nodes: list[str]) -> Iterator[tuple[str, int, list[float]]]:
    by_node: dict[str, list[_Line]] = {node: [] for node in nodes}
    for line in lines:
        by_node[line.node].append(line)
    for node, its in by_node.items():
        yield node, len(its), [sum(part) / len(its) for part in zip(*(one.ns for one in its))]


def _row(label: str, times: Sequence[float], longest: float,
        legend: tuple[tuple[str, str, str], ...]) -> Row:
    lost = sum(ns for (kind, _, _), ns in zip(legend, times) if kind in ("active", "critical"))
    return stacked(label, times, longest, share(lost, sum(times)), legend)


def stacked(label: str, times: Sequence[float], longest: float, figure: str,
        legend: tuple[tuple[str, str, str], ...] = LEGEND) -> Row:
    """times: ns by part of the legend; longest: the sum of those of the longest row."""
    parts = tuple((kind, 100 * ns / longest) for (kind, _, _), ns in zip(legend, times))
    texts = [f"{word} {seconds(ns / 1e9)} ({share(ns, sum(times))})"
        for (_, word, _), ns in zip(legend, times) if ns]
    return Row(label, parts, "; ".join(texts), figure)
