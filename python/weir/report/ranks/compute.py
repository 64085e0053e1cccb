# SPDX-License-Identifier: Apache-2.0
"""Calls, bytes and time of each rank, by reads, writes and all other operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from weir.report.frame.build import Report, StepReport, figure

KINDS = (("read", "R"), ("write", "W"), ("other", "OCM"))


@figure
def ranks_of(report: Report) -> list[dict[str, Any]]:
    """Step by step by rank; programs without a rank come last. Figures mean what they
    mean in the table of steps, so that they add up to it."""
    return [row for step in report.steps for row in _of_step(step)]


def _of_step(step: StepReport) -> Iterator[dict[str, Any]]:
    columns, ranks = step.of_members, np.array(step.ranks, np.int64)
    order = np.argsort(ranks)
    at = order[np.searchsorted(ranks[order], columns.rank)] if len(columns) else columns.rank
    sums: dict[str, np.ndarray] = {}

    def add(key: str, values: np.ndarray, mask: np.ndarray) -> None:
        sums[key] = np.zeros(len(ranks), np.int64)
        np.add.at(sums[key], at[mask], values[mask])

    for kind, codes in KINDS:
        mask = columns.by_code(codes)
        add(f"{kind}_calls", columns.app_calls, mask)
        add(f"{kind}_ns", columns.own_ns, mask)
        add(f"{kind}_bytes", columns.moved, mask)
    nodes, processes = _nodes(step), _processes(step)
    for row, rank in enumerate(ranks.tolist()):
        found = {key: int(values[row]) for key, values in sums.items()}
        ns = sum(found[f"{kind}_ns"] for kind, _ in KINDS)
        yield {
            "step": step.name, "rank": step.names.ranks[rank], "node": nodes.get(rank, ""),
            "processes": processes[rank],
            "files": step.by_rank[rank].files, "ns": ns,
            "wall_share": ns / step.wall_ns if step.wall_ns else 0.0, **found,
        }  # fmt: skip


def _processes(step: StepReport) -> Counter[int]:
    """How many each rank or program is; what one replaced by exec, and it, are one."""
    chosen = zip(step.data.members, step.members)
    return Counter(number for number, _, _ in {
        (one.number, one.file, one.process.pid) for one, is_chosen in chosen if is_chosen
    })  # fmt: skip


def _nodes(step: StepReport) -> dict[int, str]:
    """Of each rank; of processes without one the nodes, with commas between them."""
    found: dict[int, dict[str, None]] = {}
    for member, is_chosen in zip(step.data.members, step.members):
        if is_chosen:
            found.setdefault(member.number, {})[step.data.files[member.file].node] = None
    return {rank: ",".join(nodes) for rank, nodes in found.items()}
