# SPDX-License-Identifier: Apache-2.0
"""What a launch says of its trace: how many processes and calls are in it, from the chunk headers
and a few records.

Needs neither numpy nor the native reader, so that a launch stays quick; a damaged file counts as
far as it is whole.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass

_PAGE_BYTES = 4096
_MAGIC = b"WEIRTRC1"
_CHUNK_MAGIC = 0x4B484357
_VERSION_OFFSET = 8
_CHUNK = struct.Struct("<IIQIIIIQ")  # magic kind size_bytes process thread entry_bytes flags used
_PROCESS, _EVENTS, _COUNTERS = 1, 3, 4
_EVENT_BYTES, _COUNTER_BYTES, _CHUNK_BYTES = 32, 64, 64
_HISTOGRAM_BYTES = 640  # and a counter of version 1
_FORM_OFFSET, _HISTOGRAM = 7, 1  # in an entry of a counters chunk
_PID_OFFSET, _RANK_OFFSET, _EXE_OFFSET, _EXE_BYTES = 64, 72, 256, 512
_LOST_OFFSET = 144
LAUNCHERS = frozenset({"srun", "mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun"})
_OPERATION_OFFSET = 28  # in a record; 0 where none was written


@dataclass(frozen=True)
class Count:
    """``processes``: as the reports count them: one for each pid, whatever programs it executes,
    and no launchers where there are others; ``calls``: counted without a record, at levels summary
    and detail or past the budget;
    ``lost``: not even that."""

    nodes: int = 0
    processes: int = 0
    events: int = 0
    calls: int = 0
    lost: int = 0
    ranks: int = 0
    launchers: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(
            self.nodes + other.nodes,
            self.processes + other.processes,
            self.events + other.events,
            self.calls + other.calls,
            self.lost + other.lost,
            self.ranks + other.ranks,
            self.launchers + other.launchers,
        )


def _count_written(data: mmap.mmap, begin: int, places: int) -> int:
    """Records in a chunk's first places: they are written in turn, so that the end of them is found
    by halving."""
    low, high = 0, places
    while low < high:
        middle = (low + high) // 2
        if data[begin + middle * _EVENT_BYTES + _OPERATION_OFFSET]:
            low = middle + 1
        else:
            high = middle
    return low


def _count_calls(data: mmap.mmap, begin: int, end: int, is_wide: bool) -> int:
    """Calls in the counters between two places."""
    calls = 0
    while begin + _COUNTER_BYTES <= end:
        is_histogram = not is_wide and data[begin + _FORM_OFFSET] == _HISTOGRAM
        if not is_histogram:
            calls += struct.unpack_from("<Q", data, begin + 8)[0]
        begin += _HISTOGRAM_BYTES if is_histogram or is_wide else _COUNTER_BYTES
    return calls


def _count_chunks(data: mmap.mmap) -> Count:
    (version,) = struct.unpack_from("<I", data, _VERSION_OFFSET)
    is_wide = version == 1
    entry_bytes = _HISTOGRAM_BYTES if is_wide else _COUNTER_BYTES
    is_launcher: dict[int, bool] = {}  # by pid, of the last program
    events = calls = lost = ranks = launchers = 0
    position = _PAGE_BYTES
    while position + _CHUNK_BYTES <= len(data):
        magic, kind, size, _, _, _, _, used = _CHUNK.unpack_from(data, position)
        if magic != _CHUNK_MAGIC or size < _PAGE_BYTES or size % _PAGE_BYTES:
            position += _PAGE_BYTES
            continue
        end = min(position + size, len(data))
        if kind == _PROCESS and end - position >= _PAGE_BYTES:
            ranks += struct.unpack_from("<i", data, position + _RANK_OFFSET)[0] >= 0
            exe = data[position + _EXE_OFFSET : position + _EXE_OFFSET + _EXE_BYTES].split(b"\0",
                1)[0]
            pid = struct.unpack_from("<I", data, position + _PID_OFFSET)[0]
            is_launcher[pid] = os.fsdecode(os.path.basename(exe)) in LAUNCHERS
            launchers += is_launcher[pid]
            lost += struct.unpack_from("<Q", data, position + _LOST_OFFSET)[0]
        elif kind == _EVENTS:
            events += _count_written(data, position + _CHUNK_BYTES,
                min(used, (end - position - _CHUNK_BYTES) // _EVENT_BYTES))
        elif kind == _COUNTERS:
            begin = position + _CHUNK_BYTES
            calls += _count_calls(data, begin, begin + min(used, (end - begin) // entry_bytes)
                * entry_bytes, is_wide)
        position += size
    processes = sum(not one for one in is_launcher.values()) or len(is_launcher)
    return Count(1, processes, events, calls, lost, ranks, launchers)


def count_traces(paths: Iterable[str]) -> Count:
    """The sum over trace files; a file that cannot be read, or is none, counts nothing."""
    total = Count()
    for path in paths:
        try:
            with open(path, "rb") as file:
                if os.fstat(file.fileno()).st_size < _PAGE_BYTES:
                    continue
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                    if data[: len(_MAGIC)] == _MAGIC:
                        total += _count_chunks(data)
        except OSError:
            continue
    return total
