# SPDX-License-Identifier: Apache-2.0
"""The time line of one rank, asked at timestamps that are known before: a pass over its records.

The line is that of one thread: the one that called MPI_Init, else the first thread of the process.
Commands that the rank started (cp) are on its line, too: the rank waits for them. Chunks are read
in the order in which they begin, as in weir.report.waits.busy, so that few are in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from weir.analysis.columns import class_codes
from weir.analysis.intervals import Union
from weir.analysis.names import NameTable
from weir.analysis.step import StepData
from weir.trace._abi import Cursor
from weir.trace.events import Events, next_events
from weir.trace.file import EVENTS
from weir.trace.ops import HDF5, MPI, MPI_IO, NETCDF, OUTPUT, PNETCDF, op_named

_ROOM_BLOCKS = 1 << 17  # that wait to be joined with those before them
_EVER = np.iinfo(np.int64).max
IO, CALLS, LIBRARY, ALL_IO, ALL_CALLS, ALL_LIBRARY = range(6)  # the unions of a line
UNIONS, HALF = 6, 3

MPI_LAYERS = (MPI, MPI_IO)
LIBRARIES = (PNETCDF, NETCDF, HDF5, OUTPUT)
Rank = tuple[int, tuple[int, ...]]  # the member that is the rank, and all members of it


@dataclass(frozen=True)
class Line:
    """Lengths of unions up to each timestamp (rising, ns). By row: IO, the line's I/O on files;
    CALLS, that and its calls of MPI; LIBRARY, that and its calls of netCDF, HDF5, PnetCDF and
    libweir; ALL_IO, I/O of all threads; ALL_CALLS and ALL_LIBRARY, that and those of the line."""

    timestamps: np.ndarray
    lengths: np.ndarray

    def until(self, union: int, timestamps: np.ndarray) -> np.ndarray:
        """Of one union, at timestamps that were named before."""
        return self.lengths[union][np.searchsorted(self.timestamps, timestamps)]


def line_at(data: StepData, names: NameTable, rank: Rank, timestamps: np.ndarray) -> Line:
    """timestamps: in any order. cost: a pass over the records of the rank."""
    asked = np.unique(timestamps)
    lengths, before = np.zeros((UNIONS, len(asked)), np.int64), np.zeros(UNIONS, np.int64)
    done = 0
    for unions, limit in _stretches(data, rank) if len(asked) else ():
        upto = int(np.searchsorted(asked, limit, "right"))
        for number, one in enumerate(unions):
            lengths[number, done:upto] = before[number] + one.until(asked[done:upto])
            before[number] += int((one.ends - one.begins).sum())
        done = upto
    return Line(asked, lengths)


def _stretches(data: StepData, rank: Rank) -> Iterator[tuple[list[Union], int]]:
    """The unions as stretches of time that follow one another, and the end of each stretch.

    As long as no other thread has done I/O, the last three are the first three."""
    nothing = Union.of(*(np.empty(0, np.int64),) * 2)
    kept, waiting, count = [nothing] * HALF, [[] for _ in range(HALF)], 0
    for parts, limit in _chunks(data, rank):
        if len(parts) > len(kept):
            kept, waiting = kept + kept, [*waiting, *map(list, waiting)]
        found = [Union.of(*sides) for sides in parts]
        for number, into in enumerate(waiting):
            into.append(found[number % len(found)])
        count += sum(len(one.begins) for one in found)
        if count > max(_ROOM_BLOCKS, sum(len(one.begins) for one in kept)):
            cuts = [_joined([one, *more]).cut(limit) for one, more in zip(kept, waiting)]
            kept, waiting, count = [rest for _, rest in cuts], [[] for _ in cuts], 0
            yield _every([done for done, _ in cuts]), limit
    yield _every([_joined([one, *more]) for one, more in zip(kept, waiting)]), _EVER


def _every(unions: list[Union]) -> list[Union]:
    return unions * (UNIONS // len(unions))


def _joined(parts: list[Union]) -> Union:
    begins, ends = (np.concatenate([getattr(p, side) for p in parts])
        for side in ("begins", "ends"))
    return Union.of(begins, ends)


def _chunks(
    data: StepData, rank: Rank
) -> Iterator[tuple[list[tuple[np.ndarray, np.ndarray]], int]]:
    """Begins and ends for each union, chunk by chunk in the order in which chunks begin, each with
    a timestamp before which none of the following begins."""
    speaker, members = rank
    order: list[tuple[int, int, int]] = []
    for member in members:
        at, index = chunks_of(data, member), data.members[member].file
        ticks = data.files[index].array("chunks")["first_ticks"][at]
        begins = data.lines[index].timestamps(ticks).tolist()
        order += zip(begins, [member] * len(at), at.tolist())
    order.sort()
    limits = [begin for begin, _, _ in order[1:]] + [_EVER]
    thread = main_thread(data, speaker)
    for (_, member, at), limit in zip(order, limits):
        batch = read_chunk(data, member, at)
        is_on_line = (batch["thread"] == thread) | (member != speaker)
        kinds = is_io(data, member, batch), is_of(batch, *MPI_LAYERS), is_of(batch, *LIBRARIES)
        yield _parts(batch, kinds, is_on_line), limit


def _parts(
    batch: Events, kinds: tuple[np.ndarray, ...], is_on_line: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of three unions where all is on the line, else of six."""
    begin, end = batch["start_ns"], batch["start_ns"] + batch["duration_ns"]
    io, mpi, library = kinds
    masks = [every & is_on_line for every in (io, io | mpi, io | mpi | library)]
    if not is_on_line.all():
        masks += [io | mask for mask in masks]
    return [(begin[mask], end[mask]) for mask in masks]


def chunks_of(data: StepData, member: int) -> np.ndarray:
    """The places of a member's chunks of records in the table of its file."""
    one = data.members[member]
    chunks = data.files[one.file].array("chunks")
    mine = (chunks["kind"] == EVENTS) & (chunks["process"] == one.process.index)
    return np.flatnonzero(mine)


def read_chunk(data: StepData, member: int, at: int) -> Events:
    """All records of one chunk."""
    one = data.members[member]
    file, clock = data.files[one.file], data.lines[one.file].native()
    # more than there are: then it leaves memory
    room = int(file.array("chunks")["entries"][at]) + 1
    return next_events(file, clock, Cursor(chunk=at, end_chunk=at + 1), room)


def is_io(data: StepData, member: int, batch: Events) -> np.ndarray:
    """Mask of the I/O on files, without what event layers saw."""
    texts = data.files[data.members[member].file].array("texts")["is_file"] != 0
    codes = class_codes()[batch["op"]]
    counts = (codes != 0) & (codes != ord("X")) & (batch["layer"] <= MPI)
    return counts & np.r_[texts, True][np.minimum(batch["text"], len(texts))]


def is_of(batch: Events, *layers: int) -> np.ndarray:
    """Mask of the calls that these layers recorded: of the program, not of event layers."""
    return _layers(layers)[batch["layer"]]


@cache
def _layers(layers: tuple[int, ...]) -> np.ndarray:
    mask = np.zeros(256, bool)
    mask[list(layers)] = True
    return mask


def main_thread(data: StepData, member: int) -> int:
    """The thread that called MPI_Init, else the first of the process, else that of its records."""
    init, seen = op_named("MPI_Init").value, []
    has_init = bool(((data.columns.member == member) & (data.columns.op == init)).any())
    for at in chunks_of(data, member).tolist() if has_init else ():
        batch = read_chunk(data, member, at)
        found = batch["thread"][batch["op"] == init]
        if len(found):
            return int(found[0])
    pid = data.members[member].process.pid
    for at in chunks_of(data, member).tolist():
        batch = read_chunk(data, member, at)
        if (batch["thread"] == pid).any():
            return pid
        seen += batch["thread"][:1].tolist()
    return int(seen[0]) if seen else pid
