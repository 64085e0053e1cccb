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

CLOCKS_NS = 10_000_000  # by which clocks of nodes on one machine may differ
SOON_NS = 10_000_000_000  # from the start of a program to its first record
INSTEAD = "preload "  # begins the reason of a program with another LD_PRELOAD
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


def _reason(why: str, file: TraceFile) -> str:
    if why == "environment":
        return "started without LD_PRELOAD or WEIR_TRACE_DIR in its environment"
    if why.startswith(INSTEAD):
        return f"started with LD_PRELOAD={why[len(INSTEAD):]}, without weir's library in it"
    if why.startswith("loader "):
        return "a 32-bit program" if why[7:] == "32-bit" else (
            f"linked with another C library than glibc ({why[7:]})")
    if why.startswith("user "):
        return f"runs as another user ({why[5:]}), who may not write the trace"
    if why.startswith("memory ") and why[7:].isdecimal():
        limit = f"its address space is limited to {int(why[7:]) / 1e6:.0f} MB (ulimit -v)"
        return f"{limit}: too little for weir's library or its buffers; or it is static or setuid"
    if file.no_room:
        return file.no_room
    if file.problems:
        return "its records are lost with the damage of the trace, or it left none"
    return "static, setuid, of another C library, built with AddressSanitizer, or in a container"


@dataclass(frozen=True)
class Moved:
    """A program whose records are those of another node than its start. file: of the start; member:
    its first process; replaced: the member whose place it took."""

    file: int
    member: int
    replaced: int | None


def untraced_programs(data: StepData) -> tuple[list[Untraced], list[Moved]]:
    """Of one step, in the order in which they were started on each node."""
    found = [(index, one) for index, file in enumerate(data.files)
        for one in _of_file(data, index, file)]
    elsewhere = _Elsewhere(data) if len(data.files) > 1 and found else None
    untraced, moved = [], []
    for file, one in sorted(found, key=lambda entry: (entry[0], entry[1].start_ticks)):
        member = None if elsewhere is None else elsewhere.member_of(file, one)
        if member is None:
            untraced.append(one)
        else:
            moved.append(Moved(file, member, one.starter if one.is_replaced else None))
    return [*untraced, *_command_of(data)], moved


def _command_of(data: StepData) -> Iterator[Untraced]:
    """The command of `weir trace` itself, where only programs that it started left records."""
    job = data.step.job
    if job is None or not job.command or job.pid is None or not data.members:
        return
    if all(member.process.pid != job.pid for member in data.members):
        file = data.files[0]
        yield Untraced(file.node, job.pid, job.command[0], _reason("", file), None, -1, False,
            0)


class _Elsewhere:
    """One machine may stand for several nodes (WEIR_NODE): what a launcher becomes is on another
    one then."""

    def __init__(self, data: StepData):
        self._data = data
        self._of_pid: dict[int, list[int]] = defaultdict(list)
        for index, member in enumerate(data.members):
            self._of_pid[member.process.pid].append(index)

    def member_of(self, file: int, one: Untraced) -> int | None:
        """The first process with the pid of a program, and the parent that it has to have, that
        began on another node right behind the program's start."""
        starter = None if one.starter is None else self._data.members[one.starter].process
        if starter is None or not one.pid:
            return None
        parent = starter.ppid if one.is_replaced else starter.pid
        since_ns = self._data.lines[file].timestamp(one.start_ticks) - CLOCKS_NS
        found = [(self._began_ns(index), index) for index in self._of_pid[one.pid]
            if self._data.members[index].file != file
            and self._data.members[index].process.ppid == parent]
        return min(((ns, index) for ns, index in found if 0 <= ns - since_ns <= SOON_NS),
            default=(0, None))[1]

    def _began_ns(self, index: int) -> int:
        member = self._data.members[index]
        return self._data.lines[member.file].timestamp(member.process.start_ticks)


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
        file.node, one.pid, one.program, _reason(one.why, file), starter, rank, replaced,
        one.ticks, *(() if end is None else (end.signal, end.figures)),
    )  # fmt: skip
