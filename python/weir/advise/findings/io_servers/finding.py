# SPDX-License-Identifier: Apache-2.0
"""Finding io-servers: ranks that only write what others send them stand still most of the time, or
let the model wait; and how many of them would do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from weir.advise.frame.facts import Facts
from weir.advise.frame.finding import Advice, Finding, Limit
from weir.advise.frame.saving import NOTHING, Range, Saving
from weir.report.frame.amounts import counted, seconds, share
from weir.report.frame.build import StepReport
from weir.report.waits.summary import synchronisation_of
from weir.report.wall.compute import PARTS
from weir.report.wall.table import by_rank, times_of

ALL = Limit("share of the written bytes that servers write", 0.9, "share",
    "chosen: with less the ranks of the model write as well")
COMPUTES = Limit("share of its time that a server computes, at most", 0.25, "share",
    "a server packs and compresses; a rank that computes longer is one of the model")
FEW = Limit("servers over ranks, at most", 0.5, "share",
    "chosen: of more, writing is no side job")
IDLE = Limit("share of their time that servers wait for the model", 0.6, "share",
    "with less, one server fewer would be late as soon as output takes longer than usual")
LATE = Limit("wait caused by I/O over the wall time, of the model's rank that waits most",
    0.05, "share",
    "chosen: below it the servers are hidden well enough")
RESERVE = 1.25  # times the work of the servers: output differs from frame to frame


@dataclass(frozen=True)
class Servers:
    """Rows of the table `wall`, of servers and of the model."""

    step: StepReport
    servers: list[dict[str, Any]]
    model: list[dict[str, Any]]

    @staticmethod
    def mean_s(rows: list[dict[str, Any]], *keys: str) -> float:
        return sum(row[key] for row in rows for key in keys) / len(rows) / 1e9

    @property
    def work_s(self) -> float:
        """Of all servers together."""
        return self.mean_s(self.servers, "computing_ns", "io_ns") * len(self.servers)

    @property
    def life_s(self) -> float:
        return max(self.mean_s(self.servers, "computing_ns", "io_ns", "io_wait_ns", "imbalance_ns",
            "communication_ns"), 1e-9)

    @property
    def idle_s(self) -> float:
        return self.life_s - self.work_s / len(self.servers)

    @property
    def late_s(self) -> float:
        """Of the model's rank that waits most."""
        return max(row["io_wait_ns"] for row in self.model) / 1e9


def _written(step: StepReport) -> dict[int, int]:
    """Bytes by number of the rank."""
    rows = step.of_members
    rows = rows.where(rows.by_code("W") & (rows.rank >= 0))
    ranks, place = np.unique(rows.rank, return_inverse=True)
    return dict(zip(ranks.tolist(), np.bincount(place, rows.moved, len(ranks)).tolist()))


def _servers(step: StepReport) -> Servers | None:
    times = times_of(step) if step.rank_count > 2 else None
    if times is None:
        return None
    parts = times.ns[:, : len(PARTS)]
    is_server = parts[:, PARTS.index("computing_ns")] <= COMPUTES.value * parts.sum(axis=1)
    if not is_server.any():
        return None
    written = {step.names.ranks[rank]: size for rank, size in _written(step).items()}
    whole = sum(written.values())
    least = (1 - ALL.value) * whole / max(1, len(times.ranks))
    is_server &= [written.get(rank, 0) > least for rank in times.ranks]
    count = int(is_server.sum())
    if not whole or not count or count == len(parts) or count > FEW.value * len(parts):
        return None
    rows = by_rank(step)
    servers, model = ([rows[at] for at in np.flatnonzero(mask).tolist()]
        for mask in (is_server, ~is_server))
    is_all = sum(written.get(one["rank"], 0) for one in servers) >= ALL.value * whole
    return Servers(step, servers, model) if is_all else None


def _late(one: Servers) -> Iterator[Advice]:
    wall_s, have = one.step.wall_ns / 1e9, len(one.servers)
    waits = synchronisation_of(one.step).waits
    if waits is None or one.late_s < LATE.value * wall_s:
        return
    needed = max(have + 1, math.ceil(RESERVE * one.work_s / max(wall_s - one.late_s, 1e-9)))
    most = min(one.late_s, waits.critical_ns / 1e9)
    yield Advice(
        "io-servers", f"{counted(have, 'server')} in step {one.step.name}", (),
        f"the model waits {seconds(one.late_s)} for what they write, which takes them "
        f"{seconds(one.work_s)} beside {seconds(wall_s - one.late_s)} of the model.",
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
        "io-servers", f"{counted(have, 'server')} in step {one.step.name}", (),
        f"they stand still for {share(one.idle_s, one.life_s)} of their time: {needed} would do.",
        Saving(NOTHING, None, Range(0.0, computing_s * freed / (len(one.model) + freed))),
        f"Use {needed} of {have} servers, and let {counted(freed, 'rank')} more compute.",
        step=one.step.name,
    )  # fmt: skip


def find(facts: Facts) -> Iterator[Advice]:
    for step in facts.report.steps:
        one = _servers(step)
        if one is not None and not facts.is_collective(step):
            yield from _late(one)
            yield from _idle(one)


IO_SERVERS = Finding(
    name="io-servers",
    asks="Do I/O servers stand still, or let the model wait, and how many would do?",
    shrinks="I/O wait",
    limits=(ALL, COMPUTES, FEW, IDLE, LATE),
    page="guide/waits.md",
    table="wall",
    cure="",
    find=find,
)
