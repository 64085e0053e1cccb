# SPDX-License-Identifier: Apache-2.0
"""The process chunk: who wrote into a trace file, when, and what the kernel counted for it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

END_KINDS = ("no orderly end", "exit", "_exit", "exec", "fatal signal")
EXEC = 3
REFUSED_BY_BUDGET, REFUSED_BY_FILTER = 255, 254
LEVELS = ("off", "summary", "detail", "trace")
MPI_NAMES = ("", "Open MPI", "MPICH or derived from it", "another MPI")

# Behind the 64 bytes of the chunk header; docs/formats/trace.md 3.1.
CHUNK = np.dtype(
    [("header", "V64"), ("pid", "<u4"), ("ppid", "<u4"), ("rank", "<i4"), ("ranks", "<i4"),
        ("rank_source", "<u4"),
     ("mpi", "<u4"), ("level_now", "<u4"), ("end_kind", "<u4"), ("start_ticks", "<u8"),
     ("start_mono_ns", "<u8"),
     ("start_realtime_ns", "<u8"), ("last_ticks", "<u8"), ("last_mono_ns", "<u8"),
     ("end_ticks", "<u8"),
     ("lost_events", "<u8"), ("failures", "<u8"), ("io_start", "<u8", (4,)),
     ("io_last", "<u8", (4,)),
     ("parent", "<u4"), ("io_known", "<u4"), ("reserved", "V24"), ("exe", "V512"), ("cwd", "V1024"),
     ("command", "V2176"), ("own_read", "<u8"), ("own_written", "<u8"), ("passed_over", "<i8"),
     ("storage_start", "<u8", (2,)),
     ("storage_last", "<u8", (2,)), ("refusals", "u1", (8,)), ("world", "<u8"), ("reserved_end", "V56")]
)  # fmt: skip
assert CHUNK.itemsize == 4096


@dataclass(frozen=True, slots=True)
class Process:
    """One process of a node; times in ticks of the node's trace clock but where the name says
    otherwise."""

    index: int
    page: int
    whole: bool
    events: int
    counted_calls: int
    pid: int = 0
    ppid: int = 0
    rank: int = -1
    ranks: int = 0
    rank_source: int = 0  # of rank and ranks: 1 the environment, 2 MPI_Init
    mpi: int = 0  # of MPI_NAMES
    world: int = 0  # hash of the launcher's name for what it started together; 0: it has none
    level_now: int = 0
    end_kind: int = 0
    start_ticks: int = 0
    start_mono_ns: int = 0
    start_realtime_ns: int = 0
    last_ticks: int = 0
    last_mono_ns: int = 0
    end_ticks: int = 0
    lost_events: int = 0
    failures: int = 0
    parent: int = 0
    io_known: bool = False
    io_began: bool = False
    changed_user: bool = False  # and had another one at its end than the one who opened the trace
    kernel_read: int = 0
    kernel_written: int = 0
    kernel_read_ever: int = 0
    kernel_written_ever: int = 0
    kernel_read_before: int = 0
    kernel_written_before: int = 0
    kernel_storage_before: tuple[int, int] = (0, 0)
    kernel_storage_ever: tuple[int, int] = (0, 0)
    has_own_figures: bool = False
    signal: int = 0  # that killed it, as its parent noted; 0: none, or unknown
    own_read: int = 0
    own_written: int = 0
    passed_over: int = 0
    refusals: tuple[int, ...] = ()  # errnos, REFUSED_BY_BUDGET, REFUSED_BY_FILTER
    exe: str = ""
    cwd: str = ""
    command: tuple[str, ...] = ()

    def count(self, events: int, counted_calls: int) -> None:
        """Records and counted calls, once they are known: after a scan of the file."""
        object.__setattr__(self, "events", events)
        object.__setattr__(self, "counted_calls", counted_calls)

    @property
    def ended_in_order(self) -> bool:
        return not self.signal and self.end_kind in (1, 2, EXEC)

    @property
    def program(self) -> str:
        """Base name of the executable."""
        return program_name(self.exe, self.command)

    @property
    def command_line(self) -> str:
        return " ".join(self.command) or self.exe or "(unknown)"


@lru_cache(maxsize=256)  # thousands of ranks are one program
def program_name(exe: str, command: tuple[str, ...]) -> str:
    """The base name of the executable."""
    return os.path.basename(exe or (command[0] if command else ""))


def text_of(raw: bytes) -> str:
    """Printable text of bytes from a trace: those that are not UTF-8 appear as escapes."""
    return raw.decode("utf-8", "backslashreplace")


def unknown_process(index: int, page: int, events: int, counted: int) -> Process:
    """Stands for a process whose chunk is missing: its records are still counted."""
    return Process(index, page, False, events, counted)


_PLAIN = (
    "pid ppid rank ranks rank_source mpi level_now end_kind start_ticks start_mono_ns start_realtime_ns "
    "last_ticks last_mono_ns end_ticks lost_events failures parent"
).split()


def decode_processes(figures: Sequence[tuple[int, int, int, int]], raw: bytes) -> list[Process]:
    """The processes of some chunks of 4096 bytes, one after the other. figures: index, page, events
    and counted calls of each. Texts that several have in common are there once."""
    if not figures:
        return []
    table, count = np.frombuffer(raw, CHUNK), len(figures)
    texts: dict[bytes, str] = {}
    words: dict[bytes, tuple[str, ...]] = {}

    def text(begin: int, size: int) -> str:
        key = raw[begin : begin + size].split(b"\0", 1)[0]
        return texts.setdefault(key, text_of(key)) if key not in texts else texts[key]

    def command(begin: int, size: int) -> tuple[str, ...]:
        key = raw[begin : begin + size].split(b"\0\0", 1)[0].rstrip(b"\0")
        if key not in words:
            words[key] = tuple(map(text_of, key.split(b"\0"))) if key else ()
        return words[key]

    has_own = (table["io_known"] & 2) != 0
    begins = range(0, count * CHUNK.itemsize, CHUNK.itemsize)
    rest = CHUNK.itemsize - _place_of("command")
    sizes = np.where(has_own, _size_of("command"), rest).tolist()
    columns = {name: table[name].tolist() for name in _PLAIN} | _kernel_figures(table, has_own)
    columns |= dict(zip(("index", "page", "events", "counted_calls"), zip(*figures)))
    columns |= {
        "whole": [True] * count, "signal": [0] * count,
        "command": [command(at + _place_of("command"), size) for at, size in zip(begins, sizes)],
        **{name: [text(at + _place_of(name), _size_of(name)) for at in begins]
            for name in ("exe", "cwd")},
    }  # fmt: skip
    return list(map(Process, *(columns[field.name] for field in fields(Process))))


def _place_of(field: str) -> int:
    return CHUNK.fields[field][1]  # type: ignore[index]


def _size_of(field: str) -> int:
    return CHUNK[field].itemsize


def _kernel_figures(table: np.ndarray, has_own: np.ndarray) -> dict[str, Sequence[Any]]:
    """By field of Process what the kernel counted. Figures at the end are those of the start until
    the process has asked once more, which by itself makes them larger: they stay those of the start
    where the kernel refused it (another user after setuid)."""
    start, last, known = table["io_start"], table["io_last"], table["io_known"]
    more = np.where(last > start, last - start, 0)
    own = {name: np.where(has_own, table[name], 0).tolist()
        for name in ("own_read", "own_written", "passed_over", "world")}
    pairs: dict[tuple[int, ...], tuple[int, ...]] = {}  # each once: most are zeros
    storage = {
        f"kernel_storage_{when}": [pairs.setdefault(one, one) for one in
            map(tuple, np.where(has_own[:, None], table[f"storage_{which}"], 0).tolist())]
        for when, which in (("before", "start"), ("ever", "last"))
    }
    refusals = np.where(has_own[:, None], table["refusals"], 0).tolist()
    return own | storage | {
        "io_known": ((known != 0) & (last != start).any(axis=1)).tolist(),
        "io_began": (known != 0).tolist(),
        "changed_user": ((known & 4) != 0).tolist(),
        "has_own_figures": has_own.tolist(),
        "refusals": [tuple(filter(None, one)) for one in refusals],
        **{f"kernel_{name}": more[:, at].tolist() for at, name in enumerate(("read", "written"))},
        **{f"kernel_{name}_ever": last[:, at].tolist()
            for at, name in enumerate(("read", "written"))},
        **{f"kernel_{name}_before": start[:, at].tolist()
            for at, name in enumerate(("read", "written"))},
    }  # fmt: skip


def with_successors(processes: Iterable[Process]) -> tuple[Process, ...]:
    """The same processes; one without an orderly end whose pid starts once more was replaced by
    exec.

    Linux goes on counting the I/O of a pid through exec: what its successor found is what it left.
    """
    everyone = tuple(processes)
    next_of: dict[int, Process] = {}
    made: list[Process] = []
    for process in sorted(everyone, key=lambda one: one.start_ticks, reverse=True):
        successor = next_of.get(process.pid)
        if process.whole and process.end_kind == 0 and successor is not None:
            process = replace(
                process,
                end_kind=EXEC,
                end_ticks=successor.start_ticks,
                io_known=process.io_began and successor.io_began,
                kernel_read_ever=successor.kernel_read_before,
                kernel_written_ever=successor.kernel_written_before,
                kernel_storage_ever=successor.kernel_storage_before,
                kernel_read=max(0, successor.kernel_read_before - process.kernel_read_before),
                kernel_written=max(0, successor.kernel_written_before
                    - process.kernel_written_before),
            )
        next_of[process.pid] = process
        made.append(process)
    return tuple(sorted(made, key=lambda one: one.index))
