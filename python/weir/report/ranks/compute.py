# SPDX-License-Identifier: Apache-2.0
"""Calls, bytes and time of each rank, by reads, writes and all other operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from weir.report.frame.build import Report, StepReport, figure
from weir.report.frame.declared import Made

KINDS = (("read", "R"), ("write", "W"), ("other", "OCM"))


@dataclass(frozen=True)
class RankSums:
    """Of the ranks of a step: numbers, nodes, how many processes each is, and its figures by key.
    """

    step: StepReport
    numbers: np.ndarray
    nodes: list[str]
    processes: np.ndarray
    figures: dict[str, np.ndarray]

    @property
    def are_ranks(self) -> np.ndarray:
        """Mask: others are programs without ranks."""
        return self.numbers >= 0

    @property
    def wall_share(self) -> np.ndarray:
        return self.figures["ns"] / (self.step.wall_ns or np.inf)

    def rows(self) -> Made:
        def row(at: int) -> dict[str, Any]:
            figures = {key: int(values[at]) for key, values in self.figures.items()}
            number = int(self.numbers[at])
            return {
                "step": self.step.name, "rank": self.step.names.ranks[number],
                "node": self.nodes[at], "processes": int(self.processes[at]),
                "files": self.step.by_rank[number].files,
                "wall_share": float(wall_share[at]), **figures,
            }  # fmt: skip

        wall_share = self.wall_share
        return Made(len(self.numbers), row)


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
    nodes = _nodes(step)
    return RankSums(step, ranks, [nodes.get(one, "") for one in ranks.tolist()],
        _processes(step, ranks[order])[np.argsort(order)], sums)


def _processes(step: StepReport, ranks: np.ndarray) -> np.ndarray:
    """How many each rank or program is; what one replaced by exec, and it, are one. ranks: their
    numbers, rising."""
    members = step.data.members
    number, file, pid = (np.array(column, np.int64)[step.members] for column in (
        [one.number for one in members], [one.file for one in members],
        [one.process.pid for one in members]))
    at = np.searchsorted(ranks, number)
    order = np.lexsort((pid, file, at))
    is_new = np.ones(len(order), bool)
    is_new[1:] = np.logical_or.reduce([np.diff(one[order]) != 0 for one in (pid, file, at)])
    return np.bincount(at[order][is_new], minlength=len(ranks))


def _nodes(step: StepReport) -> dict[int, str]:
    """Of each rank; of processes without one the nodes, with commas between them."""
    names = [file.node for file in step.data.files]
    found: dict[int, dict[str, None]] = {}
    for member, is_chosen in zip(step.data.members, step.members):
        if is_chosen:
            found.setdefault(member.number, {})[names[member.file]] = None
    return {rank: ",".join(nodes) for rank, nodes in found.items()}
