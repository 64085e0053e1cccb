# SPDX-License-Identifier: Apache-2.0
"""Programs that were started: which of them left no records, and what is known of why (docs/formats/trace.md, section 3.2)."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from weir.analysis.step import StepData

_HEAD = "start\n"
_FAILED = "failed"
_OWN = "weir"  # the command itself is not recorded: a job script may print a report


class Start(NamedTuple):
    """pid: of the program, 0 unknown. page: process field of the process that tells; why: `environment`, `user N` or empty."""

    pid: int
    page: int
    ticks: int
    why: str
    program: str


@dataclass(frozen=True)
class Untraced:
    """A program that was started and left no records. starter: member that was replaced by it, or whose child it was."""

    node: str
    pid: int
    program: str
    reason: str
    starter: int | None
    rank: int
    is_replaced: bool  # the program took the place of the starter itself

    @property
    def is_own(self) -> bool:
        return self.program.rpartition("/")[2] == _OWN


def _parsed(text: str) -> Start | None:
    parts = text.split("\n", 5)
    if len(parts) < 6 or not all(part.isdecimal() for part in parts[1:4]):
        return None
    return Start(int(parts[1]), int(parts[2]), int(parts[3]), parts[4], parts[5])


def _succeeded(told: list[Start]) -> list[Start]:
    """Starts of one pid, in order, without those that came back."""
    made: list[Start] = []
    for one in sorted(told, key=lambda start: start.ticks):
        if one.why != _FAILED:
            made.append(one)
        elif made:
            made.pop()
    return made


def _reason(why: str, no_room: str) -> str:
    if why == "environment":
        return "started without LD_PRELOAD or WEIR_TRACE_DIR in its environment"
    if why.startswith("user "):
        return f"runs as another user ({why[5:]}), who may not write the trace"
    if no_room:
        return no_room
    return "static, setuid, of another C library, or in a container"


def untraced_programs(data: StepData) -> list[Untraced]:
    """Of one step, in the order in which they were started on each node."""
    found: list[tuple[int, int, Untraced]] = []
    for index, file in enumerate(data.files):
        first = data.first_member(index)
        begun: dict[int, list[int]] = defaultdict(list)
        members: dict[int, list[int]] = defaultdict(list)
        for number, process in enumerate(file.processes):
            begun[process.pid].append(process.start_ticks)
            members[process.page].append(first + number)
        by_pid: dict[int, list[Start]] = defaultdict(list)
        for text in file.texts:
            if text.startswith(_HEAD) and (one := _parsed(text)) is not None:
                by_pid[one.pid].append(one)
        for pid, told in by_pid.items():
            starts = _succeeded(told) if pid else told
            ticks = sorted(begun[pid]) if pid else []
            for at, one in enumerate(starts):
                until = starts[at + 1].ticks if pid and at + 1 < len(starts) else None
                next_one = bisect_right(ticks, one.ticks)
                if pid and next_one < len(ticks) and (until is None or ticks[next_one] <= until):
                    continue
                starter = next(iter(members.get(one.page, ())), None)
                process = data.members[starter].process if starter is not None else None
                replaced = process is not None and process.pid == pid
                rank = data.members[starter].rank if starter is not None and replaced and process is not None and process.rank >= 0 else -1
                found.append((index, one.ticks, Untraced(file.node, pid, one.program, _reason(one.why, file.no_room), starter, rank, replaced)))
    return [one for _, _, one in sorted(found, key=lambda entry: entry[:2])]
