# SPDX-License-Identifier: Apache-2.0
"""The time line of one rank, asked at timestamps that are known before: a pass over its records.

The line is that of one thread: the one that called MPI_Init, else the first thread of the process.
Commands that the rank started (cp) are on its line, too: the rank waits for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from weir.analysis.columns import class_codes
from weir.analysis.lines import (
    ALL_CALLS, ALL_IO, ALL_LIBRARY, CALLS, IO, LIBRARY, LineOf, lengths_of
)  # fmt: skip
from weir.analysis.names import NameTable
from weir.analysis.step import StepData
from weir.trace._abi import Cursor
from weir.trace.events import Events, next_events
from weir.trace.file import EVENTS
from weir.trace.ops import HDF5, MPI, MPI_IO, NETCDF, OUTPUT, PNETCDF, op_named

UNIONS = len((IO, CALLS, LIBRARY, ALL_IO, ALL_CALLS, ALL_LIBRARY))

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
    return Line(asked, lengths_of(data, line_of(data, rank), asked, *range(UNIONS)))


def line_of(data: StepData, rank: Rank) -> LineOf:
    """That of a rank's main thread, with the programs that the rank started."""
    speaker, members = rank
    others = tuple(one for one in members if one != speaker)
    return LineOf((speaker, *others), main_thread(data, speaker))


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
