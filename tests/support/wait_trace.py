# SPDX-License-Identifier: Apache-2.0
"""Traces of parallel programs whose waits are known: what each rank does, one thing after the
other, and MPI as it would have gone.

    program = WaitTrace(3)
    program.io(0, 10, "/scratch/restart")   # rank 0 writes for 10 ns
    program.compute(1, 4)
    program.barrier()                       # all of the world, or a part of it:
    program.barrier(ranks=(0, 1), comm="world/0.0")
    program.write(directory)                # a step's directory; run = directory.parent

Times are ns from the beginning; a collective lasts `cost` ns after the last rank has come.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from weir.trace._synthetic import UNKNOWN_OFFSET, TraceWriter, event, mark, mpi
from weir.trace.ops import ERROR, ROOT, mpi_routines

BEGIN = 1_000_000  # ns between the making of the trace file and the start of all ranks


@cache
def routine(name: str) -> int:
    """The number of a routine of MPI."""
    return next(value for value, known in mpi_routines().items() if known == name)


class WaitTrace:
    """A program in the making. now[r]: the time of rank r."""

    def __init__(self, ranks: int, *, cost: int = 1, nodes: int = 1, ahead: Sequence[int] = ()):
        """ahead: by how many ns the clock of each node is ahead of the first one's."""
        self.ranks, self.cost, self.nodes = ranks, cost, nodes
        self.ahead = [*ahead, *[0] * (nodes - len(ahead))]
        self.now = [0] * ranks
        self.todo: list[list[tuple]] = [[] for _ in range(ranks)]  # (function of id, name)
        self.beside: list[list[tuple]] = [[] for _ in range(ranks)]  # the same of a second thread
        self.sequence: dict[str, int] = {}
        self.killed: set[int] = set()
        self.notes: dict[int, list[str]] = {}
        self.begin_ns = 0  # when the ranks begin
        self.init_ns = 0  # from then on to MPI_Init

    def compute(self, rank: int, ns: int) -> None:
        self.now[rank] += ns

    def io(self, rank: int, ns: int, file: str = "/scratch/out", op: str = "write",
            size: int | None = None, offset: int = UNKNOWN_OFFSET, error: int = 0) -> None:
        """size: bytes; without it as many as ns. error: the errno of a call that failed."""
        moved = ns if size is None else size
        self._keep(rank, file, lambda at, name: event(op, at, ns, file=name, size=moved,
            offset=offset, error=error, flags=ERROR if error else 0), ns)

    def io_beside(self, rank: int, ns: int, file: str = "/scratch/out") -> int:
        """A second thread writes, from now on; returns when it has done so."""
        at = self.now[rank]
        self.beside[rank].append((at, file, lambda at, name: event("write", at, ns, file=name)))
        return at + ns

    def phase(self, rank: int, name: str, begins: bool) -> None:
        self._keep(rank, f"phase:{name}", lambda at, number: mark(begins, at, number), 0)

    def barrier(self, ranks: Sequence[int] | None = None, comm: str = "world",
            name: str = "MPI_Barrier", lost: Sequence[int] = ()) -> None:
        """A collective that nobody leaves before all have come. lost: ranks that leave no record of
        it."""
        ranks = range(self.ranks) if ranks is None else ranks
        leave = max(self.now[rank] for rank in ranks) + self.cost
        for rank in ranks:
            length = leave - self.now[rank]
            if rank in lost:
                self.now[rank] = leave
            else:
                self._collective(rank, comm, len(ranks), name, length)
        self.sequence[comm] = self.sequence.get(comm, -1) + 1

    def bcast(self, root: int, comm: str = "world") -> None:
        """Nobody waits for anybody but the root."""
        sent = self.now[root]
        for rank in range(self.ranks):
            self._collective(rank, comm, self.ranks, "MPI_Bcast", max(sent, self.now[rank])
                + self.cost - self.now[rank])
        self.sequence[comm] = self.sequence.get(comm, -1) + 1

    def gather(
        self, root: int, ranks: Sequence[int] | None = None, comm: str = "world", *,
        name: str = "MPI_Gatherv", eager: bool = False, size: int = 1 << 20, is_named: bool = True,
    ) -> None:  # fmt: skip
        """The root waits for all; the others for the root, unless what they send is buffered.
        is_named: whether the trace says who is the root."""
        ranks = range(self.ranks) if ranks is None else ranks
        came, last = self.now[root], max(self.now[rank] for rank in ranks)
        for rank in ranks:
            until = last if rank == root else max(came, self.now[rank])
            length = until + self.cost - self.now[rank] if rank == root or not eager else 0
            flags = ROOT if is_named and rank == root else 0
            self._collective(rank, comm, len(ranks), name, length, moved=size, flags=flags)
        self.sequence[comm] = self.sequence.get(comm, -1) + 1

    def message(self, of: int, to: int, *, synchronous: bool = False, size: int = 100) -> None:
        """MPI_Send or MPI_Ssend, and MPI_Recv."""
        sent, came = self.now[of], self.now[to]
        until = max(sent, came) + self.cost
        name = f"mpi:world:{self.ranks}"
        length = until - sent if synchronous else self.cost
        send = routine("MPI_Ssend" if synchronous else "MPI_Send")
        self._keep(
            of, name,
            lambda at, number: mpi("MPI_send", at, length, send, size=size, file=number, offset=to),
            length,
        )  # fmt: skip
        self.receive(to, of, until, size)

    def write_all(self, ns: dict[int, int], file: str = "/scratch/all.nc",
            ranks: Sequence[int] | None = None) -> None:
        """MPI_File_write_all: some ranks write for so many ns, and nobody leaves before all have
        written."""
        ranks = range(self.ranks) if ranks is None else ranks
        begun = max(self.now[rank] for rank in ranks)  # the data are exchanged first
        leave = begun + max(ns.values()) + self.cost
        for rank in ranks:
            came = self.now[rank]
            if rank in ns:
                self.now[rank] = begun
                self.io(rank, ns[rank], file, "pwrite")
            self.now[rank] = came
            self._keep(rank, file, lambda at, name, length=leave - came: event("MPI_File_write_all",
                at, length, file=name), leave - came)

    def mpi_io(self, rank: int, op: str, file: str, ns: int = 1) -> None:
        """A call of MPI-IO that makes no request to the system and waits for nobody."""
        self._keep(rank, file, lambda at, name: event(op, at, ns, file=name), ns)

    def note(self, rank: int, text: str) -> None:
        """A text of the trace that no call has, such as the layout of a file."""
        self.notes.setdefault(rank, []).append(text)

    def start_barrier(self, comm: str = "world") -> None:
        for rank in range(self.ranks):
            self._collective(rank, comm, self.ranks, "MPI_Ibarrier", 1, op="MPI_start_collective")
        self.came = max(self.now)
        self.sequence[comm] = self.sequence.get(comm, -1) + 1

    def wait_barrier(self, rank: int, comm: str = "world") -> None:
        """Waits for the barrier that was started last."""
        length = max(self.came - self.now[rank], 0) + self.cost
        sequence = self.sequence[comm]
        begun = self.now[rank]
        self._keep(rank, f"mpi:{comm}:{self.ranks}", lambda at, name: mpi("MPI_awaited", at, length,
            2, file=name, offset=sequence, nested=True), 0)
        self.now[rank] = begun
        self._keep(rank, "", lambda at, _: mpi("MPI_wait", at, length, routine("MPI_Wait"), size=1),
            length)

    def receive(self, rank: int, peer: int, until: int, size: int = 0) -> None:
        """Receives from `peer` what comes at `until`."""
        length = until - self.now[rank]
        self._keep(rank, f"mpi:world:{self.ranks}", lambda at, name: mpi("MPI_receive", at, length,
            routine("MPI_Recv"), file=name, offset=peer, size=size), length)

    def waitall(self, rank: int, peers: Sequence[int], until: int) -> None:
        length, begun = until - self.now[rank], self.now[rank]
        for peer in peers:
            self._keep(rank, f"mpi:world:{self.ranks}", lambda at, name, p=peer: mpi("MPI_awaited",
                at, length, 1, file=name, offset=p, nested=True), 0)
        self.now[rank] = begun
        self._keep(rank, "", lambda at, _: mpi("MPI_wait", at, length, routine("MPI_Waitall"),
            size=len(peers)), length)

    def _collective(self, rank: int, comm: str, size: int, name: str, length: int,
            op: str = "MPI_collective", moved: int = 0, flags: int = 0) -> None:
        sequence = self.sequence.get(comm, -1) + 1
        self._keep(rank, f"mpi:{comm}:{size}", lambda at, number: mpi(op, at, length, routine(name),
            file=number, offset=sequence, size=moved, flags=flags), length)

    def _keep(self, rank: int, name: str, make, ns: int) -> None:  # type: ignore[no-untyped-def]
        self.todo[rank].append((self.now[rank], name, make))
        self.now[rank] += ns

    def write(self, directory: Path, node_name: str = "n", **fields: Any) -> Path:
        """One trace file a node, ranks in turn; returns the run. node_name, fields of the processes
        (exe): another program on other nodes of the step."""
        directory.mkdir(parents=True, exist_ok=True)
        for node in range(self.nodes):
            # A clock that is ahead shows later times for the same moments: its file seems to have
            # been made later.
            with TraceWriter(directory / f"{node_name}{node}.weir", f"{node_name}{node}",
                    created_realtime_ns=1_700_000_000 * 10**9 + self.ahead[node]) as writer:
                begin = writer.created_ticks + BEGIN
                for rank in range(node, self.ranks, self.nodes):
                    killed = rank in self.killed
                    last = begin + max(self.now[rank], 1)
                    process = writer.process(
                        100 + rank, rank, self.ranks, start_ticks=begin + self.begin_ns,
                        last_ticks=last, end_ticks=0 if killed else last, end_kind=0 if killed
                        else 1, **fields
                    )
                    for text in self.notes.get(rank, ()):
                        process.name(text)
                    self.todo[rank].insert(0,
                        (self.begin_ns + self.init_ns, "", lambda at, _: event("MPI_Init", at, 0)))
                    parts = [make(begin + at, process.name(name) if name else 0)
                        for at, name, make in self.todo[rank]]
                    more = [
                        make(begin + at, process.name(name)) for at, name, make in self.beside[rank]
                    ]
                    if more:
                        process.events(more, thread=2)
                    joined = np.concatenate(parts)
                    ends = joined["start"] + joined["duration"]
                    process.events(joined[np.argsort(ends, kind="stable")])
        return directory.parent
