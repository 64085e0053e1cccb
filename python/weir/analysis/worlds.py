# SPDX-License-Identifier: Apache-2.0
"""Which ranks belong together: the parallel programs of a step.

A step may start several of them, one after another or side by side, and each numbers its ranks
from 0. A **world** is what one launcher starts together, or MPI_Comm_spawn: one MPI_COMM_WORLD. The
trace has the launcher's name for it (docs/formats/trace.md, 3.1). Where the launcher has none, the
ranks of a node that one process started are of one world; what is started on other nodes joins the
first that has such ranks not yet.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from weir.trace import Process, TraceFile
from weir.trace.process import EXEC, program_name

FROM_MPI = 2  # rank_source of a process that called MPI_Init
Place = tuple[int, int]  # trace file, process in it
# Programs that run a script: the script is what a user calls the program.
SHELLS = ("sh", "bash", "dash", "ksh", "zsh", "csh", "tcsh")
_INTERPRETERS = (*SHELLS, "python", "perl", "ruby", "Rscript", "julia", "awk", "gawk", "mawk")


@dataclass(slots=True)
class _Rank:
    """One rank of one world: the processes that are it, and what they started."""

    rank: int
    ranks: int
    name: int
    root: Place
    started_ns: int
    ppid: int
    places: list[Place] = field(default_factory=list)
    speaker: Place | None = None


@dataclass(frozen=True)
class World:
    """name: the programs of its ranks; ranks: how many there are, with those that left no trace."""

    name: str
    ranks: int


@dataclass(frozen=True)
class Worlds:
    """In the order in which they began. of: by trace file and process the index of its world, -1
    for what is no rank."""

    found: tuple[World, ...]
    of: tuple[tuple[int, ...], ...]

    @property
    def names(self) -> list[str]:
        """Of each, distinct: model, model#2."""
        times: dict[str, int] = {}
        made = []
        for one in self.found:
            times[one.name] = times.get(one.name, 0) + 1
            made.append(one.name if times[one.name] == 1 else f"{one.name}#{times[one.name]}")
        return made


def worlds_of(files: Sequence[TraceFile]) -> Worlds:
    of = [[-1] * len(file.processes) for file in files]
    found = []
    for ranks in _by_world(_ranks_of(files)):
        for one in ranks:
            for file, process in one.places:
                of[file][process] = len(found)
        size = max(len({one.rank for one in ranks}), *(one.ranks for one in ranks))
        found.append(World(_name(files, ranks), size))
    return Worlds(tuple(found), tuple(map(tuple, of)))


def program_of(process: Process) -> str:
    """What a user calls the program: the script, where an interpreter runs one."""
    return _called(process.exe, process.command)


@lru_cache(maxsize=256)  # thousands of ranks are one program
def _called(exe: str, command: tuple[str, ...]) -> str:
    program = program_name(exe, command)
    if program.rstrip("0123456789.") in _INTERPRETERS and command:
        called, *words = command
        if words and not words[0].startswith("-"):
            called = words[0]
        return os.path.basename(called.lstrip("-").rstrip("/")) or program
    return program or "(unknown)"


def _ranks_of(files: Sequence[TraceFile]) -> list[_Rank]:
    """In the order of their starts."""
    order = sorted(
        ((one.start_realtime_ns, at, one.index) for at, file in enumerate(files)
            for one in file.processes if one.rank >= 0)
    )  # fmt: skip
    last: dict[tuple[int, int], Place] = {}  # by file and pid
    named: dict[tuple[int, int, int], Place] = {}  # by pid, parent and name of the world
    of: dict[Place, _Rank] = {}
    made = []
    for started_ns, file, index in order:
        process = files[file].processes[index]
        before = last.get((file, process.pid))
        if before is None or files[file].processes[before[1]].end_kind != EXEC:
            before = last.get((file, process.ppid))
        key = (process.pid, process.ppid, process.world)
        if before is None and process.world:
            before = named.get(key)  # on another node of the same machine (WEIR_NODE)
        named[key] = (file, index)
        one = of[before] if before is not None and _is_one(of[before], process) else None
        speaks = process.rank_source == FROM_MPI and not process.parent
        if one is None or (speaks and one.speaker is not None):
            one = _Rank(process.rank, process.ranks, process.world, (file, index), started_ns,
                process.ppid)
            made.append(one)
        one.ranks = max(one.ranks, process.ranks)
        one.places.append((file, index))
        if speaks:
            one.speaker = (file, index)
        of[file, index] = one
        last[file, process.pid] = (file, index)
    return made


def _is_one(rank: _Rank, process: Process) -> bool:
    """Whether what a rank started, or became by exec, has its number from it."""
    is_sized = rank.ranks == process.ranks or 0 in (rank.ranks, process.ranks)
    return rank.rank == process.rank and rank.name == process.world and is_sized


def _by_world(every: list[_Rank]) -> Iterator[list[_Rank]]:
    """Those of each world, in the order of their ranks."""
    groups: dict[tuple, list[_Rank]] = {}
    nth: dict[tuple, int] = {}
    for one in every:
        key = (one.ranks, one.name) if one.name else (one.ranks, one.root[0], one.ppid)
        again = nth[(*key, one.rank)] = nth.get((*key, one.rank), -1) + 1
        groups.setdefault((*key, again), []).append(one)
    made: list[tuple[bool, int, set[int], list[_Rank]]] = []
    for group in groups.values():
        ranks, is_named, size = {one.rank for one in group}, bool(group[0].name), group[0].ranks
        at = None if is_named else next(
            (other for other in made if not other[0] and other[1] == size
                and other[2].isdisjoint(ranks)), None)
        if at is None:
            made.append((is_named, size, ranks, group))
        else:
            at[2].update(ranks)
            at[3].extend(group)
    for _, _, _, group in made:
        yield sorted(group, key=lambda one: (one.rank, one.started_ns))


def _name(files: Sequence[TraceFile], ranks: list[_Rank]) -> str:
    """The programs that called MPI_Init, else what the ranks' own processes became."""
    names: dict[str, None] = {}
    for one in ranks:
        file, index = one.speaker or _own(files, one)
        names[program_of(files[file].processes[index])] = None
    some = list(names)
    return "+".join(some[:3]) + "+..." * (len(some) > 3)


def _own(files: Sequence[TraceFile], one: _Rank) -> Place:
    pid = files[one.root[0]].processes[one.root[1]].pid
    return [at for at in one.places if files[at[0]].processes[at[1]].pid == pid][-1]
