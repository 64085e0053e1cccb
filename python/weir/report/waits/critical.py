# SPDX-License-Identifier: Apache-2.0
"""What a step would take with I/O at no cost, and its critical path: which rank's computing, MPI
and I/O decide when it ends, however many messages lie between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from weir.report.waits.operations import Operations


@dataclass(frozen=True)
class Stretch:
    """Stretches of time of strands, rising; what a second of I/O costs there."""

    strand: np.ndarray
    begin_ns: np.ndarray
    end_ns: np.ndarray
    price: np.ndarray


@dataclass(frozen=True)
class RankPath:
    """How long the critical path runs through one rank: what it did then."""

    location: int
    computing_ns: int
    mpi_ns: int
    io_ns: int


@dataclass(frozen=True)
class Spent:
    """Arrays by operation, ns. own: I/O in front of it, of the thread itself and of programs that
    its rank started; all: of all threads of the rank that do not call MPI, too; calls: own I/O and
    calls of MPI in front of it that are no operation; within: own I/O in it, when it no longer
    waits for others."""

    own: np.ndarray
    all: np.ndarray
    calls: np.ndarray
    within: np.ndarray


@dataclass(frozen=True)
class Critical:
    """ns. critical_ns: what the step would be shorter with I/O at no cost; most_ns: the same when
    ranks wait for the I/O of their threads that do not call MPI; path: where the I/O lies that
    counts, and how much of each second; ranks: the whole critical path, longest first;
    background_ns: I/O of such threads; not_followed: waits whose partner came behind them."""

    critical_ns: int
    most_ns: int
    background_ns: int
    not_followed: int
    path: Stretch
    ranks: tuple[RankPath, ...]


def critical_of(found: Operations, spent: Spent) -> Critical:
    replay = found.replay
    made = replay.run(spent.own, with_path=True)
    most = made.saved_ns
    background = int((spent.all - spent.own).sum())
    if background > 0:
        most = max(most, replay.run(spent.all).saved_ns)
    begins, ends = replay.gaps()
    before, op = made.path.before, made.path.op
    io = np.minimum(spent.own[before], ends[before] - begins[before])
    free = ends[before] - begins[before] - np.maximum(spent.calls[before], io)
    within = np.minimum(spent.within[op], replay.end_ns[op] - replay.start_ns[before])
    whole = ends[before] - begins[before] + replay.end_ns[op] - replay.start_ns[before]
    parts = (
        (before, free, ends[before] - begins[before] - free - io, io),
        (op, np.zeros(len(op), np.int64), whole - (ends[before] - begins[before]) - within, within),
    )
    gap, call = np.flatnonzero(io > 0), np.flatnonzero(within > 0)
    path = Stretch(
        np.r_[replay.strand[before[gap]], replay.strand[op[call]]],
        np.r_[begins[before[gap]], replay.start_ns[before[call]]],
        np.r_[ends[before[gap]], replay.end_ns[op[call]]],
        np.r_[made.path.price[gap], np.zeros(len(call))],
    )  # fmt: skip
    ranks = _by_rank(found, parts)
    return Critical(made.saved_ns, most, background, made.not_followed, path, ranks)


def _by_rank(found: Operations, parts: tuple[tuple[np.ndarray, ...], ...]) -> tuple[RankPath, ...]:
    """parts: an operation, and what its rank did: computing, MPI, I/O."""
    count = int(found.location_of_strand.max(initial=-1)) + 1
    sums = np.zeros((3, count), np.int64)
    for op, *lengths in parts:
        location = found.location_of(op)
        for into, ns in zip(sums, lengths):
            np.add.at(into, location, ns)
    whole = sums.sum(axis=0)
    order = np.argsort(-whole, kind="stable")
    order = order[whole[order] > 0]
    return tuple(map(RankPath, order.tolist(), *sums[:, order].tolist()))


def by_location(location: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Each rank (or other number) with the places where it stands, rising."""
    order = np.argsort(location, kind="stable")
    begins = np.flatnonzero(np.r_[True, np.diff(location[order]) != 0]) if len(order) else order
    for rows in np.split(order, begins[1:]) if len(order) else ():
        yield int(location[rows[0]]), rows
