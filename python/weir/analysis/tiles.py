# SPDX-License-Identifier: Apache-2.0
"""I/O over time as tiles: one for each row of ranks (or group of files) and slice of time, in one
pass over the records.

busy_ns and calls of a tile are those of reads, writes, and anything else; bytes those of reads and
writes. waiting_ns is what a rank spent in MPI's collectives, waits, receives, probes and sends.
Slices are powers of two of ns, so that coarser ones are sums of finer ones. Figures mean what they
mean in the tables (docs/reference/tables.md): added up over all slices they are the step's calls,
bytes and seconds.
"""

from __future__ import annotations

import ctypes as c
from dataclasses import dataclass

import numpy as np

from weir.analysis.clock import Line
from weir.trace import TraceFile
from weir.trace._abi import NO_ROW, TILE, Clock, Window, tiles_function
from weir.trace.file import remote_reader, threads_for

NOWHERE = NO_ROW  # the row of processes, and 255 the group of files, that count nowhere
HIDDEN_GROUP = 255
MOST_BINS = 1 << 19
FINEST, COARSEST = 0, 52


@dataclass(frozen=True)
class Grid:
    """Slices of 2**shift ns from origin_ns (since 1970) on."""

    origin_ns: int
    shift: int
    bins: int


def grid_over(first_ns: int, last_ns: int, most_bins: int) -> Grid:
    """The finest grid from first_ns on that holds last_ns in at most `most_bins` slices."""
    if not 0 < most_bins <= MOST_BINS:
        raise ValueError(f"{most_bins} slices: 1 to {MOST_BINS} are possible")
    length = max(0, last_ns - first_ns)
    shift = FINEST
    while (length >> shift) >= most_bins:
        shift += 1
    if shift > COARSEST:
        raise ValueError(f"{length / 1e9:.0f} s cannot be cut into {most_bins} slices")
    return Grid(first_ns, shift, (length >> shift) + 1)


def tiles(
    files: tuple[TraceFile, ...],
    lines: tuple[Line, ...],
    rows_of: list[np.ndarray],
    grid: Grid,
    *,
    rows: int,
    groups_of: list[np.ndarray] | None = None,
    groups: int = 1,
    all_names: bool = False,
    threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Tiles by row, shape (rows, bins), and by group of files, shape (groups, bins), of trace
    files, scanned or not.

    rows_of: the row of each process of each file (NOWHERE: left out). groups_of: the group of each
    text of each file. all_names: pipes and devices too. threads: as many as are worth while when
    not given. Raises MemoryError.
    """
    other = remote_reader(files)
    if other is not None:
        return other.tiles(files, lines, rows_of, grid, rows=rows, groups_of=groups_of,
            groups=groups, all_names=all_names)
    by_row, by_group = np.zeros((rows, grid.bins), TILE), np.zeros((groups, grid.bins), TILE)
    count = len(files)
    of_rows = [np.ascontiguousarray(one, np.uint32) for one in rows_of]
    of_groups = [np.ascontiguousarray(one, np.uint8) for one in groups_of or ()]
    threads = threads or threads_for(sum(file.header.file_bytes for file in files))
    window = Window(grid.origin_ns, grid.bins, grid.shift, rows, groups, threads)
    failed = tiles_function()(
        (c.c_void_p * count)(*(file.handle for file in files)),
        (Clock * count)(*(line.native() for line in lines)),
        (c.c_void_p * count)(*(one.ctypes.data for one in of_rows)),
        (c.c_void_p * count)(*(one.ctypes.data for one in of_groups)),
        count, all_names, c.byref(window), by_row.ctypes.data, by_group.ctypes.data,
    )  # fmt: skip
    if failed:
        raise MemoryError(f"not enough memory for the tiles, or {threads} threads cannot be had")
    for file in files:
        file.leave()
    return by_row, by_group


def coarser(made: np.ndarray) -> np.ndarray:
    """The same tiles in slices twice as long; the last slice of an odd number has only itself."""
    bins = made.shape[1]
    out = np.zeros((made.shape[0], (bins + 1) // 2), TILE)
    for name in TILE.names:
        out[name] = made[name][:, ::2]
        out[name][:, : bins // 2] += made[name][:, 1::2]
    return out
