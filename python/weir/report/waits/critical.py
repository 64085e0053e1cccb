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
    """Stretches of time of ranks in front of operations, rising; what a second of I/O costs there.
    """

    location: np.ndarray
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


def critical_of(found: Operations, own_ns: np.ndarray, all_ns: np.ndarray) -> Critical:
    """own_ns: of I/O in front of each operation, of the thread itself and of programs that its rank
    started; all_ns: of all threads of the rank."""
    replay = found.replay
    made = replay.run(own_ns, with_path=True)
    most = made.saved_ns
    background = int((all_ns - own_ns).sum())
    if background > 0:
        most = max(most, replay.run(all_ns).saved_ns)
    begins, ends = replay.gaps()
    before, op = made.path.before, made.path.op
    in_mpi = replay.end_ns[op] - replay.start_ns[before]
    io = np.minimum(own_ns[before], ends[before] - begins[before])
    ranks = _by_rank(found, op, before, in_mpi, ends[before] - begins[before] - io, io)
    order = np.flatnonzero(io > 0)[::-1]
    path = Stretch(
        found.location[before[order]], begins[before[order]], ends[before[order]],
        made.path.price[order],
    )  # fmt: skip
    return Critical(made.saved_ns, most, background, made.not_followed, path, ranks)


def _by_rank(
    found: Operations, op: np.ndarray, before: np.ndarray, in_mpi: np.ndarray,
    computing: np.ndarray, io: np.ndarray,
) -> tuple[RankPath, ...]:  # fmt: skip
    count = int(found.location.max(initial=-1)) + 1
    waiting, working = found.location[op], found.location[before]
    sums = [
        np.bincount(of, ns, count).astype(np.int64)
        for of, ns in ((working, computing), (waiting, in_mpi), (working, io))
    ]
    rows = [RankPath(at, *(int(one[at]) for one in sums)) for at in range(count)]
    kept = [one for one in rows if one.computing_ns + one.mpi_ns + one.io_ns > 0]
    return tuple(sorted(kept, key=lambda one: -(one.computing_ns + one.mpi_ns + one.io_ns)))


def by_location(location: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Each rank (or other number) with the places where it stands, rising."""
    order = np.argsort(location, kind="stable")
    begins = np.flatnonzero(np.r_[True, np.diff(location[order]) != 0]) if len(order) else order
    for rows in np.split(order, begins[1:]) if len(order) else ():
        yield int(location[rows[0]]), rows
