# SPDX-License-Identifier: Apache-2.0
"""Calls, bytes and time of each rank, by reads, writes and all other operations."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from weir.analysis.ranks import RankName
from weir.report.frame.build import Report, StepReport, figure
from weir.report.frame.declared import Made

KINDS = (("read", "R"), ("write", "W"), ("other", "OCM"))


@dataclass(frozen=True)
class RankSums:
    """Of the ranks of a step: names, nodes, how many processes each is, and its figures by key."""

    step: StepReport
    numbers: list[int]
    names: list[RankName]
    nodes: list[str]
    processes: list[int]
    figures: dict[str, np.ndarray]

    @property
    def wall_share(self) -> np.ndarray:
        return self.figures["ns"] / (self.step.wall_ns or np.inf)

    def rows(self) -> Made:
        def row(at: int) -> dict[str, Any]:
            figures = {key: int(values[at]) for key, values in self.figures.items()}
            return {
                "step": self.step.name, "rank": self.names[at], "node": self.nodes[at],
                "processes": self.processes[at],
                "files": self.step.by_rank[self.numbers[at]].files,
                "wall_share": float(self.wall_share[at]), **figures,
            }  # fmt: skip

        return Made(len(self.names), row)


def ranks_of(report: Report) -> list[dict[str, Any]]:
    """Step by step by rank; programs without a rank come last. Figures mean what they
    mean in the table of steps, so that they add up to it."""
    return [row for step in report.steps for row in ranks_of_step(step).rows()]


@figure
def ranks_of_step(step: StepReport) -> RankSums:
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
    sums["ns"] = sum((sums[f"{kind}_ns"] for kind, _ in KINDS), np.zeros(len(ranks), np.int64))
    nodes, processes, numbers = _nodes(step), _processes(step), ranks.tolist()
    return RankSums(step, numbers, [step.names.ranks[one] for one in numbers],
        [nodes.get(one, "") for one in numbers], [processes[one] for one in numbers], sums)


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
