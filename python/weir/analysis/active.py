# SPDX-License-Identifier: Apache-2.0
"""Active time: the length of the union of all I/O intervals of a choice of processes, over all
nodes, exact to the ns."""

from __future__ import annotations

import ctypes as c
from dataclasses import dataclass

import numpy as np

from weir.analysis.clock import Line
from weir.trace import TraceFile
from weir.trace._abi import Clock, library
from weir.trace.file import remote_reader, threads_for


@dataclass(frozen=True)
class Active:
    """first_ns and last_ns: start of the first and end of the last interval; records: how many were
    merged."""

    ns: int
    first_ns: int
    last_ns: int
    records: int


def active_time(
    files: tuple[TraceFile, ...],
    lines: tuple[Line, ...],
    masks: list[np.ndarray] | None = None,
    *,
    all_names: bool = False,
    threads: int | None = None,
) -> Active:
    """Union of the records of trace files, scanned or not; masks: a boolean for each process of
    each file. all_names: pipes and devices too.

    The threads (as many as are worth while) take one stretch of time after the other.
    """
    other = remote_reader(files)
    if other is not None:
        return other.active(files, lines, masks, all_names)
    count = len(files)
    chosen = [np.ascontiguousarray(mask, np.uint8) for mask in masks] if masks is not None else None
    handles = (c.c_void_p * count)(*(file.handle for file in files))
    clocks = (Clock * count)(*(line.native() for line in lines))
    pointers = (c.c_void_p * count)(*(mask.ctypes.data for mask in chosen or ()))
    out = [c.c_int64() for _ in range(3)]
    records = c.c_uint64()
    threads = threads or threads_for(sum(file.header.file_bytes for file in files))
    failed = library().weir_reader_active(handles, clocks, pointers, count, all_names, threads,
        *map(c.byref, out), c.byref(records))
    if failed:
        raise MemoryError(
            f"not enough memory for the active time, or {threads} threads cannot be had")
    for file in files:
        file.leave()
    return Active(*(value.value for value in out), records.value)
