# SPDX-License-Identifier: Apache-2.0
"""Notes on processes that were started and waited for (docs/formats/trace.md, section 3.2)."""

from __future__ import annotations

import signal as signals
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from weir.trace.process import EXEC, Process

_FAILED = "failed"
NO_SIGNAL = 0


class Start(NamedTuple):
    """A program was about to be started. pid: of the program, 0 unknown. page: process field of
    the process that noted it; why: as there, or empty."""

    pid: int
    page: int
    ticks: int
    why: str
    program: str


class End(NamedTuple):
    """A child was waited for. signal: that killed it, or NO_SIGNAL. figures: rchar, wchar,
    read_bytes and write_bytes of all programs that had this pid, and of the children for which
    they waited; None: unknown."""

    pid: int
    ticks: int
    signal: int
    figures: tuple[int, ...] | None


class Children:
    """The notes among the texts of a trace file, by pid and in the order of their time."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.starts: dict[int, list[Start]] = {}
        self.ends: dict[int, list[End]] = {}
        for text in texts:
            if text.startswith("start\n"):
                self._add_start(text.split("\n", 5)[1:])
            elif text.startswith("end\n"):
                self._add_end(text.split("\n")[1:])
        self.starts = {pid: _succeeded(some) if pid else some for pid, some in self.starts.items()}
        for some in self.ends.values():
            some.sort(key=lambda one: one.ticks)

    def _add_start(self, parts: list[str]) -> None:
        if len(parts) == 5 and all(part.isdecimal() for part in parts[:3]):
            pid, page, ticks = map(int, parts[:3])
            self.starts.setdefault(pid, []).append(Start(pid, page, ticks, *parts[3:]))

    def _add_end(self, parts: list[str]) -> None:
        if len(parts) in (3, 7) and all(part.isdecimal() for part in parts):
            pid, ticks, signal, *figures = map(int, parts)
            self.ends.setdefault(pid, []).append(End(pid, ticks, signal, tuple(figures) or None))

    def end_of(self, pid: int, since: int, until: int | None = None) -> End | None:
        """The first end of a pid from some ticks on, and before others."""
        first = next((one for one in self.ends.get(pid, ()) if one.ticks >= since), None)
        return None if first is None or (until is not None and first.ticks > until) else first


def _succeeded(noted: list[Start]) -> list[Start]:
    """Starts of one pid, in order, without those that came back."""
    made: list[Start] = []
    for one in sorted(noted, key=lambda start: start.ticks):
        if one.why != _FAILED:
            made.append(one)
        elif made:
            made.pop()
    return made


def with_ends(processes: Iterable[Process], children: Children) -> tuple[Process, ...]:
    """The same processes; those that were killed with the signal and, where the process itself
    could not ask for them any more, the figures of the kernel that their parents noted."""
    everyone = tuple(processes)
    later: dict[int, int] = {}
    made: list[Process] = []
    for process in sorted(everyone, key=lambda one: one.start_ticks, reverse=True):
        end = children.end_of(process.pid, process.start_ticks, later.get(process.pid))
        starts = children.starts.get(process.pid, ()) if end is not None else ()
        is_replaced = end is not None and any(
            process.start_ticks < one.ticks <= end.ticks for one in starts
        )  # by a program without records: it is that one's end
        if process.whole and process.end_kind != EXEC and end is not None and not is_replaced:
            process = _with_end(process, end)
        later[process.pid] = process.start_ticks
        made.append(process)
    return tuple(sorted(made, key=lambda one: one.index))


def _with_end(process: Process, end: End) -> Process:
    process = replace(process, signal=end.signal)
    if end.figures is None or process.end_ticks or not process.io_began:
        return process
    read, written, *storage = end.figures
    return replace(
        process,
        end_ticks=end.ticks,
        io_known=True,
        kernel_read_ever=read,
        kernel_written_ever=written,
        kernel_storage_ever=(storage[0], storage[1]),
        kernel_read=max(0, read - process.kernel_read_before),
        kernel_written=max(0, written - process.kernel_written_before),
    )


def signal_name(signal: int) -> str:
    """SIGSEGV, or `signal N` where it has no name."""
    try:
        return signals.Signals(signal).name
    except ValueError:
        return f"signal {signal}"
