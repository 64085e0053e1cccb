# SPDX-License-Identifier: Apache-2.0
"""Ranks of a step: which processes are one rank of which parallel program.

A step may start several programs, one after another or side by side; a communicator of one is none
of the other. As for clocks (weir.analysis.alignment), the n-th process of one rank belongs to the
n-th program of its size. What a rank starts itself (a shell, cp) is that rank's I/O.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from weir.analysis.step import StepData


@dataclass(frozen=True)
class Locations:
    """Arrays by rank, in the order of programs and ranks; of_member: the rank of each member of the
    step, -1 none."""

    program: np.ndarray
    rank: np.ndarray
    node: np.ndarray  # index of its trace file
    speaker: np.ndarray  # the member that is the rank itself
    of_member: np.ndarray
    members: tuple[tuple[int, ...], ...]

    def __len__(self) -> int:
        return len(self.rank)

    def at(self, programs: np.ndarray, ranks: np.ndarray) -> np.ndarray:
        """The rank of each program and rank, -1 where there is none."""
        if not len(self):
            return np.full(len(ranks), -1, np.int64)
        most = int(self.rank.max())
        stride = most + 3
        keys = self.program * stride + self.rank + 1  # a process without a rank has rank -1
        sought = programs * stride + np.where((ranks >= 0) & (ranks <= most), ranks + 1, stride - 1)
        place = np.minimum(np.searchsorted(keys, sought), len(keys) - 1)
        return np.where(keys[place] == sought, place, -1)


def locations_of(data: StepData, speakers: Iterable[int]) -> Locations:
    """speakers: members that made records of MPI or marks of phases; each is a rank, with the
    processes that it started."""
    speakers = sorted(set(speakers),
        key=lambda m: (data.lines[data.members[m].file]
            .timestamp(data.members[m].process.start_ticks), m))
    seen: dict[tuple[int, int], int] = defaultdict(int)
    programs: dict[tuple[int, int], int] = {}
    found = []
    for member in speakers:
        process, rank = data.members[member].process, data.members[member].rank
        nth = seen[process.ranks, rank]
        seen[process.ranks, rank] += 1
        program = programs.setdefault((process.ranks, nth), len(programs))
        found.append((program, rank, data.members[member].file, member))
    found.sort()
    of_member = np.full(len(data.members), -1, np.int64)
    for location, (_, _, _, member) in enumerate(found):
        of_member[member] = location
    _add_descendants(data, of_member)
    members = _grouped(of_member, len(found))
    columns = (np.array(column, np.int64) for column in zip(*found)) if found else (np.empty(0,
        np.int64),) * 4
    return Locations(*columns, of_member, tuple(map(tuple, members)))


def lives_of(data: StepData, locations: Locations) -> np.ndarray:
    """Start and last sign of life of each rank's own process, ns; shape: (ranks, 2)."""
    last = np.zeros(len(data.members), np.int64)
    np.maximum.at(last, data.columns.member, data.columns.last_ns)
    lives = np.zeros((len(locations), 2), np.int64)
    for location, member in enumerate(locations.speaker.tolist()):
        one = data.members[member]
        line, process = data.lines[one.file], one.process
        begin = line.timestamp(process.start_ticks)
        ends = [line.timestamp(t) for t in (process.last_ticks, process.end_ticks) if t]
        lives[location] = begin, max([begin, *ends, int(last[member])])
    return lives


def _grouped(of_member: np.ndarray, count: int) -> list[list[int]]:
    members: list[list[int]] = [[] for _ in range(count)]
    for member, location in enumerate(of_member.tolist()):
        if location >= 0:
            members[location].append(member)
    return members


def _add_descendants(data: StepData, of_member: np.ndarray) -> None:
    """Children and their children, as far as they have no rank of their own."""
    for member in np.flatnonzero(of_member >= 0).tolist():
        waiting = [member]
        while waiting:
            one = data.members[waiting.pop()]
            for child in data.children.get((one.file, one.process.pid), ()):
                if of_member[child] < 0:
                    of_member[child] = of_member[member]
                    waiting.append(child)
