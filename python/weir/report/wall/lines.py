# SPDX-License-Identifier: Apache-2.0
"""Whose calls make the time line of a rank: those of one thread, the one that called MPI_Init, else
the first thread of the process. Commands that the rank started (cp) are on its line, too: the rank
waits for them."""

from __future__ import annotations

from weir.analysis.lines import LineOf
from weir.analysis.step import StepData
from weir.trace._abi import Cursor
from weir.trace.events import next_events
from weir.trace.ops import op_named

Rank = tuple[int, tuple[int, ...]]  # the member that is the rank, and all members of it


def line_of(data: StepData, rank: Rank) -> LineOf:
    """That of a rank's main thread, with the programs that the rank started."""
    speaker, members = rank
    others = tuple(one for one in members if one != speaker)
    return LineOf((speaker, *others), main_thread(data, speaker))


def main_thread(data: StepData, member: int) -> int:
    """The thread that called MPI_Init, else the first of the process, else that of its records."""
    init, seen = op_named("MPI_Init").value, []
    one = data.members[member]
    file, clock, pid = data.files[one.file], data.lines[one.file].native(), one.process.pid
    chunks = file.array("chunks")
    has_init = member in data.members_with(init)
    wanted = None
    if has_init:
        wanted = bytearray(256)
        wanted[init] = 1
    for at in file.chunks_of(one.process.index).tolist():
        room = int(chunks["entries"][at]) + 1  # more than there are: then it leaves memory
        cursor = Cursor(chunk=at, end_chunk=at + 1)
        threads = next_events(file, clock, cursor, room, wanted)["thread"]
        if has_init and len(threads):
            return int(threads[0])
        if (threads == pid).any():
            return pid
        seen += threads[:1].tolist()
    return int(seen[0]) if seen else pid
