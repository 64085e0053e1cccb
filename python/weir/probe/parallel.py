# SPDX-License-Identifier: Apache-2.0
"""What only several ranks can measure: the network between them, and one directory under all of
them at once, from as many nodes as the launcher gives. Collective; needs mpi4py."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weir.probe.measure import MOST_BYTES, Rate, read_rate, write_rate

SIZES = (8, 1 << 10, 16 << 10, 256 << 10, 4 << 20)  # of messages
BUDGET_S = 0.1
LEAST_CALLS, MOST_CALLS = 10, 2000
FILE_REQUEST = 1 << 20


@dataclass(frozen=True)
class Message:
    """Half of a round trip between two ranks: seconds, and the bytes that it moves a second."""

    bytes: int
    seconds: float
    bytes_per_s: float


@dataclass(frozen=True)
class Parallel:
    """ranks, nodes: that took part. distant: whether messages went from node to node. pairs: all
    ranks in pairs at once, in bytes/s of large messages, all pairs together. creates_per_s: of all
    ranks in one directory."""

    ranks: int
    nodes: int
    distant: bool
    messages: tuple[Message, ...]
    pairs_bytes_per_s: float
    creates_per_s: float
    rates: tuple[Rate, ...]


def measure_parallel(comm: Any, place: Path) -> Parallel:
    """[collective] Some seconds. place: a directory that all ranks see; its files are removed.
    Raises OSError on all ranks where one of them cannot work there."""
    names = comm.allgather(platform.node())
    peer = next((rank for rank, name in enumerate(names) if name != names[0]), 1)
    messages = tuple(_message(comm, peer, size) for size in SIZES)
    pairs = _pairs(comm)
    creates = sum(_agreed(comm, lambda: _create(comm, place)))
    return Parallel(comm.size, len(set(names)), names[peer] != names[0], messages, pairs, creates,
        _files(comm, place))


def _message(comm: Any, peer: int, size: int) -> Message:
    """Ranks 0 and peer; the others wait."""
    data, calls = bytearray(size), MOST_CALLS
    for most in (LEAST_CALLS, 0):  # the first round chooses how many fit into the budget
        comm.Barrier()
        count, begin = most or calls, time.perf_counter()
        for _ in range(count):
            if comm.rank == 0:
                comm.Send(data, peer)
                comm.Recv(data, peer)
            elif comm.rank == peer:
                comm.Recv(data, 0)
                comm.Send(data, 0)
        each = (time.perf_counter() - begin) / count / 2
        calls = comm.bcast(max(LEAST_CALLS, min(MOST_CALLS, int(BUDGET_S / 2 / max(each, 1e-9)))))
    each = comm.bcast(each)
    return Message(size, each, size / max(each, 1e-9))


def _pairs(comm: Any) -> float:
    """Each rank of the first half with one of the second, both ways."""
    half = comm.size // 2
    peer = (comm.rank + half) % (2 * half) if comm.rank < 2 * half else None
    sent, got, moved = bytearray(SIZES[-1]), bytearray(SIZES[-1]), 0
    comm.Barrier()
    begin = time.perf_counter()
    for _ in range(LEAST_CALLS):
        if peer is not None:
            comm.Sendrecv(sent, peer, recvbuf=got, source=peer)
            moved += SIZES[-1]
    seconds = max(comm.allgather(time.perf_counter() - begin))
    return sum(comm.allgather(moved)) / seconds


def _create(comm: Any, place: Path) -> float:
    """Files that this rank makes a second while all do."""
    begin, made = time.perf_counter(), 0
    while time.perf_counter() - begin < 2 * BUDGET_S and made < 1000:
        os.close(os.open(place / f"c-{comm.rank}-{made}", os.O_CREAT | os.O_WRONLY, 0o600))
        made += 1
    took = time.perf_counter() - begin
    for one in range(made):
        os.unlink(place / f"c-{comm.rank}-{one}")
    return made / took


def _files(comm: Any, place: Path) -> tuple[Rate, ...]:
    """A file of each rank, written; then that of the next rank is read, which another node has
    written where there are several."""
    most = max(MOST_BYTES // comm.size, FILE_REQUEST)
    mine, other = (place / f"r-{rank % comm.size}" for rank in (comm.rank, comm.rank + 1))
    written = _agreed(comm, lambda: write_rate(mine, FILE_REQUEST, most))
    slowest = max(seconds for _, seconds in written)
    least = min(size for size, _ in written)
    read = _agreed(comm, lambda: next(read_rate(other, FILE_REQUEST, least)))
    comm.Barrier()
    mine.unlink(missing_ok=True)
    return (Rate("write", FILE_REQUEST, comm.size, False, sum(n for n, _ in written) / slowest),
        Rate("read", FILE_REQUEST, comm.size, False, sum(read)))


def _agreed(comm: Any, call: Callable[[], Any]) -> list[Any]:
    """What each rank finds, all at once. Raises the error of one rank on all of them."""
    comm.Barrier()
    try:
        found: Any = call()
    except OSError as error:
        found = error
    every = comm.allgather(found)
    for one in every:
        if isinstance(one, OSError):
            raise one
    return every
