# SPDX-License-Identifier: Apache-2.0
"""Ranks of a step: which processes are one rank of which parallel program.

A step may start several programs, one after another or side by side (weir.analysis.worlds); a
communicator of one is none of the other. What a rank starts itself (a shell, cp) is that rank's
I/O.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from weir.analysis.ranks import RankName, RankNames
from weir.analysis.step import StepData

EVERYTHING = "all"  # the label of all processes of a step without ranks, where one started the rest

@dataclass(frozen=True)
class Locations:
    """Arrays by rank, in the order of programs and ranks. rank: in its program; number: what
    identifies it in the report; of_member: the place of each member of the step here, -1 none."""

    program: np.ndarray
    rank: np.ndarray
    number: np.ndarray
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


def names_of(data: StepData, ranks: RankNames, locations: Locations) -> list[RankName]:
    """What tables call them. A process of a step without ranks stands for all that it started."""
    named = [ranks[number] for number in locations.number.tolist()]
    if data.worlds:
        return named
    times = Counter(one.label for one in named)
    pids = [data.members[speaker].process.pid for speaker in locations.speaker.tolist()]
    if len(named) == 1 and len(locations.members[0]) > 1:
        return [replace(named[0], label=EVERYTHING)]
    return [
        replace(one, label=f"{one.label} {pid}") if times[one.label] > 1 else one
        for one, pid in zip(named, pids)
    ]  # fmt: skip


def locations_of(data: StepData, speakers: Iterable[int]) -> Locations:
    """speakers: members that made records of MPI or marks of phases; each is a rank, with the
    processes that it started."""
    speakers = _by_start(data, sorted(set(speakers)))
    seen: dict[tuple[int, int], int] = defaultdict(int)
    programs: dict[tuple[int, int], int] = {}
    found = []
    for member in speakers:
        one = data.members[member]
        nth = seen[one.world, one.rank]
        seen[one.world, one.rank] += 1
        program = programs.setdefault((one.world, nth), len(programs))
        found.append((program, one.rank, one.number, one.file, member))
    found.sort()
    of_member = np.full(len(data.members), -1, np.int64)
    for location, (*_, member) in enumerate(found):
        of_member[member] = location
    _add_descendants(data, of_member)
    members = _grouped(of_member, len(found))
    columns = (np.array(column, np.int64) for column in zip(*found)) if found else (np.empty(0,
        np.int64),) * 5
    return Locations(*columns, of_member, tuple(map(tuple, members)))


def _by_start(data: StepData, members: list[int]) -> list[int]:
    """members: rising."""
    of = [data.members[one] for one in members]
    ticks = np.array([one.process.start_ticks for one in of], np.uint64)
    file, ns = np.array([one.file for one in of], np.int64), np.zeros(len(of), np.int64)
    for index in np.unique(file).tolist():
        ns[file == index] = data.lines[index].bounded(ticks[file == index])
    return [members[at] for at in np.argsort(ns, kind="stable").tolist()]


def lives_of(data: StepData, locations: Locations) -> np.ndarray:
    """Start and last sign of life of each rank's own process, ns; shape: (ranks, 2)."""
    lives = np.zeros((len(locations), 2), np.int64)
    if not len(locations):
        return lives
    processes = [one.process for one in data.members]
    pid, start, last_sign, end = (np.array([getattr(one, key) for one in processes], np.uint64)
        for key in ("pid", "start_ticks", "last_ticks", "end_ticks"))
    of = locations.of_member
    is_own = (of >= 0) & (pid == pid[locations.speaker[of]])
    first = np.full(len(locations), np.iinfo(np.uint64).max)
    np.minimum.at(first, of[is_own], start[is_own])
    seen = np.zeros(len(data.members), np.int64)
    np.maximum.at(seen, data.sums.by_member.member, data.sums.by_member.last_ns)
    for index, line in enumerate(data.lines):
        its = np.flatnonzero(locations.node == index)
        speaker = locations.speaker[its]
        lives[its, 0] = lives[its, 1] = line.bounded(first[its])
        for ticks in (last_sign[speaker], end[speaker]):
            at = np.where(ticks != 0, line.bounded(ticks), lives[its, 0])
            lives[its, 1] = np.maximum(lives[its, 1], at)
        lives[its, 1] = np.maximum(lives[its, 1], seen[speaker])
    return lives


def _grouped(of_member: np.ndarray, count: int) -> list[list[int]]:
    members: list[list[int]] = [[] for _ in range(count)]
    for member, location in enumerate(of_member.tolist()):
        if location >= 0:
            members[location].append(member)
    return members


def roots_of(data: StepData) -> list[int]:
    """Processes that no other process of the step started, each as the program that it ran last."""
    pids = {(one.file, one.process.pid) for one in data.members if not one.is_launcher}
    last: dict[tuple[int, int], int] = {}
    for index, one in enumerate(data.members):
        pid = (one.file, one.process.pid)
        is_root = (one.file, one.process.ppid) not in pids or pid in last
        if not one.is_launcher and one.process.whole and is_root:
            at = last.setdefault(pid, index)
            if one.process.start_ticks >= data.members[at].process.start_ticks:
                last[pid] = index
    return list(last.values())


def _add_descendants(data: StepData, of_member: np.ndarray) -> None:
    """Children and their children, as far as they have no rank of their own; and the programs that
    a process ran before, where nothing is parallel."""
    programs: dict[tuple[int, int], list[int]] = defaultdict(list)
    children: dict[tuple[int, int], list[int]] = defaultdict(list)
    for index, one in enumerate(data.members):
        programs[one.file, one.process.pid].append(index)
        children[one.file, one.process.ppid].append(index)
    for member in np.flatnonzero(of_member >= 0).tolist():
        waiting = [member]
        while waiting:
            one = data.members[waiting.pop()]
            pid = (one.file, one.process.pid)
            found = children[pid] if data.worlds else children[pid] + programs[pid]
            for other in found:
                if of_member[other] < 0:
                    of_member[other] = of_member[member]
                    waiting.append(other)
