# SPDX-License-Identifier: Apache-2.0
"""One trace file, mapped and checked by the native reader; its tables as numpy arrays that lie
where the reader made them."""

from __future__ import annotations

import ctypes as c
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from weir.trace import _abi
from weir.trace.children import Children, with_ends
from weir.trace.errors import DamagedFile
from weir.trace.process import (
    CHUNK, Process, decode_processes, text_of, unknown_process, with_successors
)  # fmt: skip

EVENTS, COUNTERS = 3, 4
LOST = np.uint32(2**32 - 1)
_NO_PLACE = 2**64 - 1
_REFUSED_BY = {
    1: "a limit on the size of files (ulimit -f)",
    2: "no memory for its buffers (ulimit -v), or no descriptor to spare (ulimit -n)",
}
_BYTES_A_THREAD = 16 << 20
_PROCESSES_AT_ONCE = 256  # whose pages of the mapping are in memory together


@dataclass(frozen=True)
class Problem:
    """Something wrong in a trace file: where it was first seen, and how often in that stretch."""

    path: str
    offset: int | None
    reason: str
    count: int = 1

    def __str__(self) -> str:
        place = "" if self.offset is None else f" at byte {self.offset}"
        times = f" ({self.count} times)" if self.count > 1 else ""
        return f"{self.path}: {self.reason}{place}{times}"


def threads_for(size_bytes: int) -> int:
    """How many threads are worth while for so many bytes of traces, up to the number of cores of
    this process."""
    return max(1, min(len(os.sched_getaffinity(0)), size_bytes // _BYTES_A_THREAD))


class FileReader(Protocol):
    """Who opens trace files: other processes (weir.cluster)."""

    def open(self, paths: Sequence[Path], exclusion: Any = None) -> list[TraceFile | Problem]:
        """Each file, scanned, or why nothing of it can be read. exclusion: the files that are left
        out (weir.analysis.exclusion.Exclusion)."""


class TraceFile:
    """A trace file. Opening walks its chunks; scan() passes over all records once.

    Raises DamagedFile when nothing of it can be read. Arrays keep the mapping alive.
    """

    has_rows = True
    remote: Any = None  # who reads the records instead of this process (weir.analysis.remote)

    def __init__(self, path: str | os.PathLike[str]):
        self.path = os.fspath(path)
        self._lib = _abi.library()
        message, place = c.create_string_buffer(512), c.c_uint64()
        self.handle = self._lib.weir_reader_create(os.fsencode(self.path), message, len(message),
            c.byref(place))
        if not self.handle:
            raise DamagedFile(self.path, None if place.value == _NO_PLACE else place.value,
                message.value.decode())
        self.header = _abi.Header()
        self._lib.weir_reader_get_header(self.handle, c.byref(self.header))

    def __del__(self) -> None:
        handle = c.c_void_p(getattr(self, "handle", None))
        if handle:
            self._lib.weir_reader_destroy(c.byref(handle))

    @property
    def node(self) -> str:
        return text_of(self.header.node)

    @property
    def no_room(self) -> str:
        """Why programs of the node left no records in the file, or nothing."""
        if not self.header.refused:
            return ""
        causes = [text for bit, text in _REFUSED_BY.items() if self.header.refused_by & bit]
        programs = "1 program" if self.header.refused == 1 else f"{self.header.refused:,} programs"
        cause = " or ".join(causes) or "disk full, or WEIR_BUDGET too small"
        return f"weir could not record {programs}: {cause}"

    def scan(self, threads: int = 1) -> TraceFile:
        """One pass over all records; needed before rows, histograms, units, syncs and the times of
        chunks.

        The processes of the file are shared out over so many threads.
        """
        if self._lib.weir_reader_scan(self.handle, threads) != 0:
            raise MemoryError(
                f"{self.path}: not enough memory for its tables, or {threads} threads cannot be "
                f"had")
        if "processes" in vars(self):  # asked for before
            table = self.array("processes")
            for one, *counts in zip(self.processes, table["events"].tolist(),
                    table["counted"].tolist()):
                one.count(*counts)
        return self

    def find_syncs(self) -> TraceFile:
        """The array `syncs` alone, before a scan. cost: a pass over one word of each record."""
        if self._lib.weir_reader_syncs(self.handle) != 0:
            raise MemoryError(f"{self.path}: not enough memory for its barriers")
        return self

    def forget(self) -> None:
        """Give up rows and histograms: the arrays are empty from now on, and what was taken out of
        them without copying must not be used any more. rows_of() still has the rows."""
        self.has_rows = False
        self._lib.weir_reader_forget(self.handle)

    def rows_of(self, first: int, end: int) -> np.ndarray:
        """The rows of the processes from `first` to before `end`. Threads may call it at once.
        cost: once forgotten, a pass over the records of these processes, and a copy."""
        if self.has_rows:
            rows = self.array("rows")
            return rows[slice(*np.searchsorted(rows["process"], (first, end)))]
        count, layout = c.c_uint64(), _abi.LAYOUTS["rows"]
        place = self._lib.weir_reader_rows_of(self.handle, first, end, c.byref(count))
        if not place:
            raise MemoryError(f"{self.path}: not enough memory for its rows")
        try:
            return np.frombuffer(c.string_at(place, count.value * layout.itemsize), layout)
        finally:
            self._lib.weir_reader_free_rows(place)

    def exclude(self, mask: np.ndarray) -> TraceFile:
        """Count some of `texts`, those that the mask has, as names of no files. Call it before
        scan() and before all passes over records."""
        chosen = np.ascontiguousarray(mask, np.uint8)
        self._lib.weir_reader_exclude(self.handle, chosen.ctypes.data, len(chosen))
        return self

    def find_times(self, threads: int = 1) -> TraceFile:
        """The times of chunks alone: a pass much cheaper than scan(). Nothing to do after a scan,
        or tiles with a row for each process."""
        if _abi.times_function()(self.handle, threads) != 0:
            raise MemoryError(
                f"{self.path}: not enough memory for its chunks, or {threads} threads cannot be "
                f"had")
        return self

    def exchanges(self, threads: int = 1) -> np.ndarray:
        """How much each process received by MPI: the array `exchanges`, copied. cost: one pass over
        all records."""
        if _abi.exchanges_function()(self.handle, threads) != 0:
            raise MemoryError(f"{self.path}: not enough memory for what its processes received")
        found = TraceFile.array_of(self, "exchanges", self.handle).copy()
        self.leave()
        return found

    def leave(self) -> None:
        """Give up the pages of the mapping that are in memory: they come back when they are read.
        The kernel maps what lies around a page that is read, so a look at each process maps all.
        """
        _abi.leave_function()(self.handle)

    def array(self, name: str) -> np.ndarray:
        """A table of the reader by its name in _abi.ARRAYS, without copying."""
        return self.array_of(name, self.handle)

    def array_of(self, name: str, handle: int) -> np.ndarray:
        count, entry = c.c_uint64(), c.c_uint64()
        place = _abi.library().weir_reader_get(handle, _abi.ARRAYS.index(name), c.byref(count),
            c.byref(entry))
        layout = _abi.LAYOUTS[name]
        if count.value and entry.value != layout.itemsize:
            raise ImportError(
                f"{name}: the library has entries of {entry.value} bytes, not {layout.itemsize}")
        return self._view(place, count.value * layout.itemsize, layout)

    def _view(self, place: int | None, size: int, layout: np.dtype) -> np.ndarray:
        if not size:
            return np.empty(0, layout)
        buffer = (c.c_char * size).from_address(place)
        buffer.owner = self  # the mapping lives as long as any array over it
        view = np.frombuffer(buffer, layout)
        view.flags.writeable = False
        return view

    @property
    def raw(self) -> np.ndarray:
        """All bytes of the file. Not kept: the file would hold the array that holds the file."""
        size = c.c_uint64()
        return self._view(self._lib.weir_reader_bytes(self.handle, c.byref(size)), size.value,
            np.dtype("u1"))

    @cached_property
    def processes(self) -> tuple[Process, ...]:
        keys = ("index", "page", "events", "counted", "whole", "offset")
        table = self.array("processes")
        columns = [range(len(table)), *(table[key].tolist() for key in keys[1:])]
        made: list[Process] = []
        for first in range(0, len(table), _PROCESSES_AT_ONCE):
            made += self._some_processes(
                list(zip(*(column[first : first + _PROCESSES_AT_ONCE] for column in columns))))
            self.leave()
        return with_ends(with_successors(made), self.children)

    def _some_processes(self, rows: list[tuple[int, ...]]) -> list[Process]:
        raw = self.raw
        whole = [row for row in rows if row[4]]
        pages = b"".join(raw[row[5] : row[5] + CHUNK.itemsize].tobytes() for row in whole)
        found = iter(decode_processes([row[:4] for row in whole], pages))
        return [next(found) if row[4] else unknown_process(*row[:4]) for row in rows]

    @cached_property
    def children(self) -> Children:
        """What was noted of programs that were started and of children that were waited for."""
        return Children(self.notes.values())

    @cached_property
    def notes(self) -> dict[int, str]:
        """Of `texts` those that are no paths, by their places: what was noted under a word of its
        own is among them."""
        return {at: text for at, text in enumerate(self.texts) if text[:1] != "/"}

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The distinct file names, as they were recorded."""
        table = self.array("texts")
        made = c.create_string_buffer(int(table["length"].sum()) + len(table))
        self._lib.weir_reader_copy_texts(self.handle, made)
        # many nodes have the same names, which are in memory once
        return tuple(map(sys.intern, text_of(made.raw).split("\0")[: len(table)]))

    def texts_of(self, processes: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Index in `texts` of the name of each (process, id), or LOST. A forked child's ids may be
        its parent's."""
        processes, ids = (np.ascontiguousarray(one, np.uint32) for one in (processes, ids))
        out = np.empty(len(ids), np.uint32)
        self._lib.weir_reader_texts_of(self.handle, processes.ctypes.data, ids.ctypes.data,
            len(ids), out.ctypes.data)
        return out

    @cached_property
    def _by_page(self) -> dict[int, int]:
        return {one.page: one.index for one in self.processes}

    def names_of(self, process: int) -> np.ndarray:
        """The rows of the table of names that hold for a process: its own, and those it inherited
        when it was forked."""
        table, at = self.array("names"), self._by_page
        parts = []
        while True:
            begin, end = np.searchsorted(table["process"], [process, process + 1])
            parts.append(table[begin:end])
            parent = at.get(self.processes[process].parent)
            if parent is None or parent >= process:
                return np.concatenate(parts)
            process = parent

    def records(self, chunk: np.void) -> np.ndarray:
        """The records of one events chunk, in the order in which they were made; damaged ones are
        zeros."""
        place = _abi.records_function()(self.handle, int(chunk["offset"]))
        return self._view(place, int(chunk["entries"]) * _abi.RECORD.itemsize, _abi.RECORD)

    @cached_property
    def _chunks_by_process(self) -> tuple[np.ndarray, np.ndarray]:
        chunks = self.array("chunks")
        of_events = np.flatnonzero(chunks["kind"] == EVENTS)
        process = chunks["process"][of_events]
        order = np.argsort(process, kind="stable")
        return of_events[order], process[order]

    def chunks_of(self, process: int) -> np.ndarray:
        """The places of a process's chunks of records in the table of chunks, rising."""
        places, processes = self._chunks_by_process
        begin, end = np.searchsorted(processes, (process, process + 1))
        return places[begin:end]

    def event_chunks(self) -> np.ndarray:
        chunks = self.array("chunks")
        return chunks[chunks["kind"] == EVENTS]

    @property
    def problems(self) -> list[Problem]:
        return [
            Problem(self.path, int(one["offset"]), self._lib.weir_reader_reason(int(one["reason"]))
                .decode(), int(one["count"]))
            for one in self.array("problems")
        ]


def remote_reader(files: Sequence[TraceFile]) -> Any:
    """Who reads the records of a step's files (weir.analysis.remote.RemoteReader); None: this
    process."""
    return files[0].remote if files else None
