# SPDX-License-Identifier: Apache-2.0
"""Finding io-servers: ranks that only write what others send them stand still most of the time, or
let the model wait; and how many of them would do. A rank that computes as the others do and writes
for them as well is none: that is finding serial-io."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from weir.advise.frame.facts import Facts
from weir.advise.frame.finding import Advice, Finding, Limit
from weir.advise.frame.saving import NOTHING, Range, Saving
from weir.analysis.ranks import NO_RANK
from weir.report.frame.amounts import counted, seconds, share
from weir.report.frame.build import StepReport
from weir.report.waits.summary import synchronisation_of
from weir.report.wall.compute import PARTS
from weir.report.wall.table import Times, before_mpi_of, by_rank, times_of

ALL = Limit("share of the bytes written by the program that servers write", 0.9, "share",
    "chosen: with less the ranks of the model write as well")
COMPUTES = Limit("share of its time that a server computes, at most", 0.25, "share",
    "a server packs and compresses; a rank that computes longer is one of the model")
LESS = Limit("what a server computes after MPI_Init over the mean of the ranks of the model, "
    "at most", 0.5, "share", "chosen: a rank that computes as the others do is one of the model, "
    "though waits make it a small part of its time")
OWN = Limit("share of the I/O time of a server that is on files that it writes", 0.5, "share",
    "chosen: a rank that reads more than it writes does not write for others in the first place")
FEW = Limit("servers over ranks, at most", 0.5, "share",
    "chosen: of more, writing is no side job")
IDLE = Limit("share of their time that servers wait for the model", 0.6, "share",
    "with less, one server fewer would be late as soon as output takes longer than usual")
LATE = Limit("wait caused by I/O over the wall time, of the model's rank that waits most",
    0.05, "share",
    "chosen: below it the servers are hidden well enough")
RESERVE = 1.25  # times the work of the servers: output differs from frame to frame
_COMPUTING = PARTS.index("computing_ns")


@dataclass(frozen=True)
class Servers:
    """Rows of the table `wall`, of servers and of the model: one parallel program of the step.
    program: its name where there are several; output_ns: I/O of the servers on what they write."""

    step: StepReport
    program: str
    servers: list[dict[str, Any]]
    model: list[dict[str, Any]]
    output_ns: int

    @staticmethod
    def mean_s(rows: list[dict[str, Any]], *keys: str) -> float:
        return sum(row[key] for row in rows for key in keys) / len(rows) / 1e9

    @property
    def what(self) -> str:
        of = f" of {self.program}" if self.program else ""
        return f"{counted(len(self.servers), 'server')}{of} in step {self.step.name}"

    @property
    def wall_s(self) -> float:
        return max(row["rank_ns"] for row in (*self.servers, *self.model)) / 1e9

    @property
    def work_s(self) -> float:
        """Of all servers together."""
        return self.mean_s(self.servers, "computing_ns", "io_ns") * len(self.servers)

    @property
    def life_s(self) -> float:
        return max(self.mean_s(self.servers, "rank_ns"), 1e-9)

    @property
    def idle_s(self) -> float:
        return self.life_s - self.work_s / len(self.servers)

    @property
    def late_s(self) -> float:
        """Of the model's rank that waits most, as far as servers write meanwhile."""
        return min(max(row["io_wait_ns"] for row in self.model), self.output_ns) / 1e9


@dataclass(frozen=True)
class _Moved:
    """Of ranks, by number: bytes that they write; I/O, all of it and on files to which they write
    more than they read from them, ns."""

    written: dict[int, int]
    io_ns: dict[int, int]
    output_ns: dict[int, int]


def _moved(step: StepReport) -> _Moved:
    rows = step.of_members
    rows = rows.where(rows.rank >= 0)
    keys = np.column_stack([rows.rank, rows.name])
    files, place = np.unique(keys, axis=0, return_inverse=True)
    ranks, of_rank = np.unique(files[:, 0], return_inverse=True)
    read, written, ns = (np.bincount(place.reshape(-1), column, len(files))
        for column in (rows.moved * rows.by_code("R"), rows.moved * rows.by_code("W"),
            rows.own_ns))

    def by_rank(column: np.ndarray) -> dict[int, int]:
        sums = np.bincount(of_rank.reshape(-1), column, len(ranks))
        return dict(zip(ranks.tolist(), sums.astype(np.int64).tolist()))

    return _Moved(by_rank(written), by_rank(ns), by_rank(ns * (written > read)))


def _all_servers(step: StepReport) -> Iterator[Servers]:
    """Of each parallel program that has some."""
    times = times_of(step) if step.rank_count > 2 else None
    if times is None:
        return
    parts = times.ns[:, : len(PARTS)]
    may_serve = parts[:, _COMPUTING] <= COMPUTES.value * parts.sum(axis=1)
    if not may_serve.any():
        return
    programs: dict[str, list[int]] = {}
    for at, rank in enumerate(times.ranks):
        if rank.is_rank:
            programs.setdefault(rank.program, []).append(at)
    moved = None
    for program, rows in programs.items():
        if len(rows) > 2 and may_serve[rows].any():
            moved = moved or _moved(step)
            one = _servers(step, program, np.array(rows), may_serve, times, moved)
            if one is not None:
                yield one


def _servers(step: StepReport, program: str, rows: np.ndarray, may_serve: np.ndarray, times: Times,
        moved: _Moved) -> Servers | None:  # fmt: skip
    number = {step.names.ranks[one]: one for one in moved.written}
    written, io_ns, output_ns = (
        np.array([column.get(number.get(times.ranks[at], NO_RANK), 0) for at in rows.tolist()])
        for column in (moved.written, moved.io_ns, moved.output_ns))
    whole = int(written.sum())
    is_server = (may_serve[rows] & (written > (1 - ALL.value) * whole / len(rows))
        & (output_ns >= OWN.value * io_ns))
    count = int(is_server.sum())
    if not whole or not count or count > FEW.value * len(rows):
        return None
    computing = np.maximum(0, times.ns[:, _COMPUTING] - before_mpi_of(step))[rows]
    is_less = bool((computing[is_server] <= LESS.value * computing[~is_server].mean()).all())
    if not is_less or written[is_server].sum() < ALL.value * whole:
        return None
    every = by_rank(step)
    servers, model = ([every[at] for at in rows[mask].tolist()] for mask in (is_server, ~is_server))
    return Servers(step, program, servers, model, int(output_ns[is_server].sum()))


def _late(one: Servers) -> Iterator[Advice]:
    have, waits = len(one.servers), synchronisation_of(one.step).waits
    if waits is None or one.late_s < LATE.value * one.wall_s:
        return
    own_s = one.wall_s - one.late_s
    needed = max(have + 1, math.ceil(RESERVE * one.work_s / max(own_s, 1e-9)))
    most = min(one.late_s, waits.critical_ns / 1e9)
    them, they = ("it", "It packs and writes") if have == 1 else ("them", "They pack and write")
    yield Advice(
        "io-servers", one.what, (),
        f"the model waits {seconds(one.late_s)} for {them}. {they} for {seconds(one.work_s)}"
        f"{' together' * (have > 1)}; "
        f"without these waits the model takes {seconds(own_s)}.",
        Saving(NOTHING, None, Range(0.5 * most, most)),
        f"Use {needed} servers, each for a part of the frames or of the fields, with room for a "
        "frame that is late.",
        step=one.step.name,
    )  # fmt: skip


def _idle(one: Servers) -> Iterator[Advice]:
    have = len(one.servers)
    needed = max(1, math.ceil(RESERVE * one.work_s / one.life_s))
    if one.idle_s < IDLE.value * one.life_s or needed >= have:
        return
    computing_s = one.mean_s(one.model, "computing_ns")
    freed = have - needed
    yield Advice(
        "io-servers", one.what, (),
        f"they stand still for {share(one.idle_s, one.life_s)} of their time: {needed} would do.",
        Saving(NOTHING, None, Range(0.0, computing_s * freed / (len(one.model) + freed))),
        f"Use {needed} of {have} servers, and let {counted(freed, 'rank')} more compute.",
        step=one.step.name,
    )  # fmt: skip


def find(facts: Facts) -> Iterator[Advice]:
    for step in facts.report.steps:
        for one in _all_servers(step) if not facts.is_collective(step) else ():
            yield from _late(one)
            yield from _idle(one)


IO_SERVERS = Finding(
    name="io-servers",
    asks="Do I/O servers stand still, or let the model wait, and how many would do?",
    shrinks="I/O wait",
    limits=(ALL, COMPUTES, LESS, OWN, FEW, IDLE, LATE),
    page="guide/waits.md",
    table="wall",
    cure="",
    decides="how well the model scales to more ranks",
    find=find,
)
