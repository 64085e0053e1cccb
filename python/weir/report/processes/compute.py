# SPDX-License-Identifier: Apache-2.0
"""Bytes that the kernel counted beside bytes that weir saw: of each process, and what a step's
report does not have."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from weir.analysis.step import StepData
from weir.report.frame.build import Report, StepReport, figure
from weir.report.processes.account import Group, account_of
from weir.report.processes.figures import Figures, ProcessFigures, is_unseen, of_processes
from weir.report.processes.running import ancestors, is_running
from weir.report.processes.starts import Untraced


@dataclass(frozen=True)
class Unseen:
    """What a step's report does not have.

    counted: by the kernel, of all processes; groups: programs without records.
    """

    counted: int
    processes: tuple[ProcessFigures, ...]
    groups: tuple[Group, ...]

    @property
    def bytes(self) -> int:
        of_processes = sum(one.unseen for one in self.processes)
        return of_processes + sum(one.bytes or 0 for one in self.groups)

    @property
    def untraced(self) -> tuple[Untraced, ...]:
        return tuple(one for group in self.groups if group.matters for one in group.programs)

    @property
    def is_much(self) -> bool:
        return is_unseen(self.bytes, self.counted)


def process_order(data: StepData, mask: np.ndarray) -> np.ndarray:
    """Indices of the chosen members of a step, by rank (no rank last), node and start."""
    at = np.flatnonzero(mask)
    nodes = {node: place for place, node in enumerate(sorted({one.node for one in data.files}))}
    place_of = np.array([nodes[one.node] for one in data.files], np.int64)
    rank = np.array([one.rank for one in data.members], np.int64)[at]
    file = np.array([one.file for one in data.members], np.int64)[at]
    started = np.array([one.process.start_ticks for one in data.members], np.uint64)[at]
    pid = of_processes(data, "pid")[at]
    return at[np.lexsort((pid, started, place_of[file], rank, rank < 0))]


@figure
def _accounts_of(step: StepReport) -> tuple[Figures, list[Group]]:
    return account_of(step.data)


def figures_of(step: StepReport) -> Figures:
    """Of all processes of the step, chosen or not."""
    return _accounts_of(step)[0]


@figure
def unseen_of(step: StepReport) -> Unseen:
    """What the kernel counted and the trace does not have, of all processes of the step."""
    figures, groups = _accounts_of(step)
    groups = [group for group in groups if not all(one.is_own for one in group.programs)]
    counted = sum(figures.counted.tolist()) + sum(one.bytes or 0 for one in groups)
    with_unseen = np.flatnonzero(figures.unseen).tolist()
    return Unseen(counted, tuple(map(figures.of, with_unseen)), tuple(groups))


@figure
def running_of(step: StepReport) -> tuple[int, ...]:
    """Members that run still, on the machine that makes the report; without those that wait for the
    report itself."""
    data, node, waiting = step.data, os.uname().nodename, ancestors()
    replaced = {
        one.starter for group in unseen_of(step).groups for one in group.programs if one.is_replaced
    }
    return tuple(
        index
        for index, one in enumerate(member.process for member in data.members)
        if one.whole and not one.end_kind and index not in data.signals and index not in replaced
        and data.files[data.members[index].file].node == node and one.pid not in waiting
        and is_running(one.pid, one.exe, one.command, one.start_realtime_ns)
    )  # fmt: skip


@figure
def background_of(step: StepReport) -> tuple[int, ...]:
    """Those that run still though the command of `weir trace` has ended."""
    job = step.data.step.job
    has_ended = job is not None and job.ended_realtime_ns is not None
    return running_of(step) if has_ended else ()


def is_complete(report: Report) -> bool:
    """Whether the trace has all that the run did."""
    return all(map(is_step_complete, report.steps))


@figure
def is_step_complete(step: StepReport) -> bool:
    failed = any(member.process.failures for member in step.data.members)
    found = unseen_of(step)
    missing = found.is_much or found.untraced or step.data.has_no_rank or background_of(step)
    return not (step.lost_events or failed or step.data.problems or not step.data.files or missing)
