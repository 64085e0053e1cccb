# SPDX-License-Identifier: Apache-2.0
"""Shares out what the kernel counted among the processes of a step and programs without records.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from weir.analysis.step import StepData
from weir.report.processes.dirtied import dirtied_by_trace, dirtied_bytes
from weir.report.processes.family import JOB, Family
from weir.report.processes.figures import (
    MOST_UNSEEN_BYTES, NOISE_BYTES, Figures, ProcessFigures, above_noise, of_processes, whole
)  # fmt: skip
from weir.report.processes.seen import evidence, seen, uncounted
from weir.report.processes.starts import Moved, Untraced, untraced_programs
from weir.trace.children import signal_name

# The loader maps programs and libraries: taken for those as long as nothing says otherwise.
_PROGRAM_TEXT_BYTES = 512 << 20
_MOST_NAMES = 3
_MOST_ANCESTORS = 100
DAMAGE = "records that are lost with the damage of its trace"
_VALGRIND = ("valgrind", "valgrind.bin")  # both replace themselves by a static tool


@dataclass(frozen=True)
class Group:
    """Programs that left no records, and the bytes of all of them together; None: unknown.

    More than one where the kernel added their bytes to one process that waited for them, and that
    process could not note the bytes of each.
    """

    programs: tuple[Untraced, ...]
    bytes: int | None

    @property
    def matters(self) -> bool:
        has_rank = any(one.rank >= 0 for one in self.programs)
        return self.bytes is None or self.bytes > NOISE_BYTES or has_rank


def account_of(data: StepData) -> tuple[Figures, list[Group], frozenset[int]]:
    """Figures of every member, the programs without records by who waited for them, and the members
    whose place a program took that has no records on their node."""
    untraced, moved = untraced_programs(data)
    account = _Account(data, untraced, moved)
    replaced = {one.starter for one in untraced if one.is_replaced} | {one.replaced
        for one in moved}
    return account.figures(), account.groups(), frozenset(replaced - {None})


class _Account:
    """Of one step. Figures of the kernel are arrays by member."""

    def __init__(
        self, data: StepData, untraced: list[Untraced], moved: list[Moved]
    ) -> None:
        self._data = data
        self._seen = seen(data)
        self._mapped, self._shared, self._rings = evidence(data)
        self._family = Family(data, self._seen, untraced, moved)
        self._single = [one for one in untraced if one.figures is not None]
        self._pooled: dict[int | None, list[Untraced]] = {}
        for one in untraced:
            if one.figures is None:
                self._pooled.setdefault(self._family.reaper(one), []).append(one)
        self._bytes_of: dict[int | None, int | None] = {}
        if JOB in self._pooled:
            self._bytes_of[JOB] = self._family.job_excess()

    def figures(self) -> Figures:
        """Of all members, without what their figures have of programs that left no records."""
        data, kernel_has = self._data, [whole(one) for one in self._seen[2:]]
        kernel, is_known = self._family.every_own()
        kernel = [one * is_known for one in kernel]
        over = [one * is_known for one in self._over(kernel, kernel_has)]
        may_pass = is_known & (of_processes(data, "has_own_figures") != 0)
        may_pass &= ~data.member_mask(lambda one: one.is_launcher)  # they map what ranks share
        for index in self._pooled:
            if index is not None and index != JOB and is_known[index]:
                self._bytes_of[index] = sum(int(one[index]) for one in over)
                may_pass[index] = False
                for of_kernel, one in zip(kernel, over):
                    of_kernel[index] -= one[index]
                    one[index] = 0
        past = self._past(kernel, kernel_has, over, may_pass)
        made = Figures(data, *self._seen[:2], is_known, *kernel[:2], *kernel_has, *over, *past, {},
            frozenset(self._family.replaced))
        for index in np.flatnonzero(made.unseen).tolist():
            made.ways[index] = self._way(index, made.of(index))
        return made

    def _over(self, kernel: list[np.ndarray], seen_bytes: list[np.ndarray]) -> list[np.ndarray]:
        """Bytes read and written by calls that the kernel counted and weir did not see."""
        more = [whole(one) for one in uncounted(self._data)]
        read, written = (counted - its + others
            for counted, its, others in zip(kernel, seen_bytes, more))
        return above_noise(read - of_processes(self._data, "passed_over"), written)

    def _past(self, kernel: list[np.ndarray], seen_bytes: list[np.ndarray], over: list[np.ndarray],
            wanted: np.ndarray) -> list[np.ndarray]:
        """Bytes read from storage and written to it without a call that the kernel counts, of the
        wanted members."""
        explained = seen_bytes[1] + over[1] + 2 * of_processes(self._data, "own_written")
        explained = explained + whole(self._shared)
        has_more = wanted & (kernel[3] > explained)
        if has_more.any():
            explained = explained + whole(dirtied_bytes(self._data)) * has_more
        more_read = kernel[2] - seen_bytes[0] - over[0]
        more_written = np.maximum(0, kernel[3] - explained)
        by_trace = dirtied_by_trace(self._data)
        found = past_calls(more_read, more_written, whole(self._mapped), self._rings != 0, by_trace)
        return [part * wanted for part in found]

    def groups(self) -> list[Group]:
        """after: figures()."""
        made = [Group((one,), self._family.bytes_of(one)) for one in self._single]
        for reaper, some in self._pooled.items():
            made.append(Group(tuple(some), self._bytes_of.get(reaper)))
        return sorted(made, key=lambda group: group.programs[0].start_ticks)

    def _way(self, index: int, one: ProcessFigures) -> str:
        member = self._data.members[index]
        if self._data.files[member.file].problems:
            return DAMAGE
        if killed := self._family.without_figures(index):
            names = [_named(self._data, child) for child in killed[:_MOST_NAMES]]
            more = len(killed) - len(names)
            rest = f" and {more} more" if more else ""
            return f"its killed children, whose own figures are not known: {', '.join(names)}{rest}"
        if self._data.lost_events_of(member):
            return "calls that have no record: the trace had no room for them, see the notes"
        no_room = self._data.files[member.file].no_room
        if not no_room and self._is_of_valgrind(index) and not one.past_calls_written:
            return "valgrind, which reads the program's files and debug information itself"
        return _way(one, bool(self._mapped[index]), bool(self._rings[index]), no_room)

    @cached_property
    def _parents(self) -> dict[tuple[int, int], int]:
        return {(m.file, m.process.pid): m.process.ppid for m in self._data.members}

    @cached_property
    def _valgrinds(self) -> set[tuple[int, int]]:
        return {
            (m.file, m.process.pid) for m in self._data.members if m.process.program in _VALGRIND
        }

    def _is_of_valgrind(self, index: int) -> bool:
        """Whether the program is valgrind, or runs within it: then valgrind's launcher had the
        number of the process, or of one that it descends from, before."""
        file, pid = self._data.members[index].file, self._data.members[index].process.pid
        for _ in range(_MOST_ANCESTORS):
            if (file, pid) in self._valgrinds:
                return True
            if (parent := self._parents.get((file, pid))) is None:
                return False
            pid = parent
        return False


def past_calls(
    more_read: Any, more_written: Any, mapped: Any, has_ring: Any, by_trace: Any = 0
) -> list[Any]:
    """Bytes that came from storage and went there without a call that the kernel counts. A page of
    a mapping that is read in to be changed, and then written, counts once. by_trace: bytes that the
    pages of the trace may account for, where no ring and no mapping does. Numbers or arrays."""
    seen_way = np.where(has_ring, more_written, np.minimum(more_written, mapped))
    more_written = np.maximum(seen_way, more_written - by_trace)
    text = np.where(has_ring, 0, _PROGRAM_TEXT_BYTES)
    of_mapping = np.maximum(0, np.minimum(more_read, mapped))
    changed = np.where(has_ring, 0, np.minimum(of_mapping, more_written))
    parts = (np.maximum(of_mapping, more_read - text) - changed, more_written)
    return [part * (part > MOST_UNSEEN_BYTES) for part in parts]


def _named(data: StepData, index: int) -> str:
    process = data.members[index].process
    signal = data.signals.get(index)
    how = f", {signal_name(signal)}" if signal else ""
    return f"{process.command_line[:60]} (pid {process.pid}{how})"


def _way(one: ProcessFigures, is_mapped: bool, has_ring: bool, no_room: str) -> str:
    ways = []
    if one.past_calls_read or one.past_calls_written:
        likely = "a mapping of files" if is_mapped else "libaio, io_uring or a mapping"
        ways.append("io_uring" if has_ring else likely)
    if one.unseen_read or one.unseen_written:
        direct = "direct system calls, or single characters through getc_unlocked and putc_unlocked"
        ways.append(f"its children: {no_room}" if no_room else direct)
    return "; ".join(ways)
