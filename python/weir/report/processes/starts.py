# SPDX-License-Identifier: Apache-2.0
"""Programs that were started: which of them left no records, and what is known of why and of their
end (docs/formats/trace.md, section 3.2)."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from weir.analysis.step import StepData
from weir.trace.children import Start
from weir.trace.file import TraceFile

_OWN = "weir"  # the command itself is not recorded: a job script may print a report


@dataclass(frozen=True)
class Untraced:
    """A program that was started and left no records.

    starter: member that was replaced by it, or whose child it was. figures: rchar, wchar,
    read_bytes and write_bytes of its pid at its end, None: unknown; signal: that killed it, or 0.
    """

    node: str
    pid: int
    program: str
    reason: str
    starter: int | None
    rank: int
    is_replaced: bool  # the program took the place of the starter itself
    start_ticks: int
    signal: int = 0
    figures: tuple[int, ...] | None = None

    @property
    def is_own(self) -> bool:
        return self.program.rpartition("/")[2] == _OWN


def _reason(why: str, no_room: str) -> str:
    if why == "environment":
        return "started without LD_PRELOAD or WEIR_TRACE_DIR in its environment"
    if why.startswith("loader "):
        return "a 32-bit program" if why[7:] == "32-bit" else (
            f"linked with another C library than glibc ({why[7:]})")
    if why.startswith("user "):
        return f"runs as another user ({why[5:]}), who may not write the trace"
    if why.startswith("memory ") and why[7:].isdecimal():
        limit = f"its address space is limited to {int(why[7:]) / 1e6:.0f} MB (ulimit -v)"
        return f"{limit}: too little for weir's library or its buffers; or it is static or setuid"
    if no_room:
        return no_room
    return "static, setuid, of another C library, built with AddressSanitizer, or in a container"


def untraced_programs(data: StepData) -> list[Untraced]:
    """Of one step, in the order in which they were started on each node."""
    found = [
        (index, one.start_ticks, one)
        for index, file in enumerate(data.files)
        for one in _of_file(data, index, file)
    ]
    return [one for _, _, one in sorted(found, key=lambda entry: entry[:2])]


def _of_file(data: StepData, index: int, file: TraceFile) -> Iterator[Untraced]:
    if not file.children.starts:
        return
    first = data.first_member(index)
    begun: dict[int, list[int]] = defaultdict(list)
    members: dict[int, int] = {}
    for number, process in enumerate(file.processes):
        begun[process.pid].append(process.start_ticks)
        members.setdefault(process.page, first + number)
    for pid, starts in file.children.starts.items():
        ticks = sorted(begun.get(pid, ())) if pid else []
        for at, one in enumerate(starts):
            until = starts[at + 1].ticks if pid and at + 1 < len(starts) else None
            next_one = bisect_right(ticks, one.ticks)
            recorded = ticks[next_one] if pid and next_one < len(ticks) else None
            if recorded is None or (until is not None and recorded > until):
                ends = [tick for tick in (recorded, until) if tick is not None]
                yield _untraced(data, file, one, members.get(one.page), min(ends, default=None))


def _untraced(
    data: StepData, file: TraceFile, one: Start, starter: int | None, until: int | None
) -> Untraced:
    process = data.members[starter].process if starter is not None else None
    replaced = process is not None and process.pid == one.pid
    is_rank = replaced and process is not None and process.rank >= 0
    rank = data.members[starter].rank if starter is not None and is_rank else -1
    end = file.children.end_of(one.pid, one.ticks, until) if one.pid else None
    return Untraced(
        file.node, one.pid, one.program, _reason(one.why, file.no_room), starter, rank, replaced,
        one.ticks, *(() if end is None else (end.signal, end.figures)),
    )  # fmt: skip
