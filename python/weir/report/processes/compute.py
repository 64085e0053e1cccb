# SPDX-License-Identifier: Apache-2.0
"""Bytes that the kernel counted beside bytes that weir saw, for each process."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from weir.analysis.columns import file_keys, merged, sums_by_member
from weir.analysis.step import StepData
from weir.report.frame.build import Report, StepReport, figure
from weir.report.processes.dirtied import dirtied_bytes
from weir.report.processes.running import ancestors, is_running
from weir.report.processes.starts import Untraced, untraced_programs
from weir.trace import TraceFile
from weir.trace.children import signal_name
from weir.trace.ops import EVENTS, NOTES, op_named
from weir.trace.process import END_KINDS, EXEC

MOST_UNSEEN_SHARE = 0.01
MOST_UNSEEN_BYTES = 1 << 20
NOISE_BYTES = 64 << 10  # libc's own requests (locales, name services), in each direction
_LOADER_BYTES = 256 << 10  # read by the loader: 832 of each of some 300 libraries
# The loader maps programs and libraries: taken for those as long as nothing says otherwise.
_PROGRAM_TEXT_BYTES = 512 << 20
_MOST_NAMES = 3
_MOST_ANCESTORS = 100
_VALGRIND = ("valgrind", "valgrind.bin")  # both replace themselves by a static tool
_IN_MEMORY = ("/dev/shm/", "/memfd:")  # file systems without storage
_UNCOUNTED = ("splice", "splice_in", "async_read", "async_write")  # by rchar and wchar


def is_unseen(unseen: int, counted: int) -> bool:
    """Whether so much of what the kernel counted was not seen that the run is incomplete."""
    return unseen > MOST_UNSEEN_BYTES and unseen > counted * MOST_UNSEEN_SHARE


@dataclass(frozen=True, slots=True)
class ProcessFigures:
    """Bytes of one process.

    kernel_*: rchar and wchar of /proc/self/io over the life of the process, less what children that
    it waited for brought in and what the recorder itself read and wrote; None: unknown.
    seen_*: reads and writes of all names, pipes included; of a file under layers what reached the
    file system, where that is more (a rank reads ahead, or writes what others left with it).
    unseen_*: what the kernel counted more, beside what streams passed over.
    past_calls_*: bytes that went to or came from storage without a call that the kernel counts
    (mappings, libaio, io_uring), roughly.
    """

    step: str
    node: str
    pid: int
    rank: int
    command: str
    end: str
    calls: int
    seconds: float
    kernel_read: int | None
    kernel_written: int | None
    seen_read: int
    seen_written: int
    is_launcher: bool
    unseen_read: int = 0
    unseen_written: int = 0
    past_calls_read: int = 0
    past_calls_written: int = 0
    way: str = ""

    @property
    def unseen(self) -> int:
        by_calls = self.unseen_read + self.unseen_written
        return by_calls + self.past_calls_read + self.past_calls_written

    @property
    def counted(self) -> int:
        """What the kernel counted for the process."""
        by_calls = (self.kernel_read or 0) + (self.kernel_written or 0)
        return by_calls + self.past_calls_read + self.past_calls_written

    @property
    def is_incomplete(self) -> bool:
        return is_unseen(self.unseen, self.counted)


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


@dataclass(frozen=True)
class Unseen:
    """What a step's report does not have.

    counted: by the kernel, of all processes; groups: programs without records.
    """

    counted: int
    processes: tuple[ProcessFigures, ...]
    groups: tuple[Group, ...]

    @property
    def bytes(self) -> int:
        of_processes = sum(one.unseen for one in self.processes)
        return of_processes + sum(one.bytes or 0 for one in self.groups)

    @property
    def untraced(self) -> tuple[Untraced, ...]:
        return tuple(one for group in self.groups if group.matters for one in group.programs)

    @property
    def is_much(self) -> bool:
        return is_unseen(self.bytes, self.counted)


def process_order(data: StepData, mask: np.ndarray) -> list[int]:
    """Indices of the chosen members of a step, by rank (no rank last), node and start."""

    def place(index: int) -> tuple:
        member = data.members[index]
        process, node = member.process, data.files[member.file].node
        return member.rank < 0, member.rank, node, process.start_ticks, process.pid, index

    return sorted(np.flatnonzero(mask).tolist(), key=place)


def process_figures(data: StepData, mask: np.ndarray) -> list[ProcessFigures]:
    """The chosen processes of a step, in their order."""
    figures = _account(data)[0]
    return [figures[index] for index in process_order(data, mask)]


def unseen(data: StepData) -> Unseen:
    """Of all processes of a step."""
    figures, groups = _account(data)
    groups = [group for group in groups if not all(one.is_own for one in group.programs)]
    counted = sum(one.counted for one in figures) + sum(one.bytes or 0 for one in groups)
    return Unseen(counted, tuple(one for one in figures if one.unseen), tuple(groups))


_JOB = -1  # whoever started the step waits for what has no traced parent
Accounts = tuple[list[ProcessFigures], list[Group]]
_accounts: WeakKeyDictionary[TraceFile, Accounts] = WeakKeyDictionary()


def _account(data: StepData) -> tuple[list[ProcessFigures], list[Group]]:
    """Figures of every member, and the programs without records by who waited for them."""
    if not data.files:
        return [], []
    if data.files[0] not in _accounts:
        _accounts[data.files[0]] = _make_account(data)
    return _accounts[data.files[0]]


def _make_account(data: StepData) -> tuple[list[ProcessFigures], list[Group]]:
    untraced = untraced_programs(data)
    account = _Account(data, untraced)
    figures = [account.figures_of(index) for index in range(len(data.members))]
    return figures, account.groups()


class _Account:
    """Shares out what the kernel counted among processes and programs without records."""

    def __init__(self, data: StepData, untraced: list[Untraced]) -> None:
        self._data = data
        self._seen, self._uncounted = _seen(data), _uncounted(data)
        self._mapped, self._shared, self._rings = _evidence(data)
        self._family = _Family(data, self._seen, untraced)
        self._single = [one for one in untraced if one.figures is not None]
        self._pooled: dict[int | None, list[Untraced]] = {}
        for one in untraced:
            if one.figures is None:
                self._pooled.setdefault(self._family.reaper(one), []).append(one)
        self._parents = {(m.file, m.process.pid): m.process.ppid for m in data.members}
        self._valgrinds = {
            (m.file, m.process.pid) for m in data.members if m.process.program in _VALGRIND
        }
        self._bytes_of: dict[int | None, int | None] = {}
        if _JOB in self._pooled:
            self._bytes_of[_JOB] = self._family.job_excess()

    def figures_of(self, index: int) -> ProcessFigures:
        """Of one member, without what its figures have of programs that left no records."""
        member, kernel = self._data.members[index], self._family.own(index)
        process = member.process
        calls, ns, seen_read, seen_written = (int(column[index]) for column in self._seen)
        one = ProcessFigures(
            self._data.step.name, self._data.files[member.file].node, process.pid, member.rank,
            process.command_line, self._end(index), calls, ns / 1e9,
            *(None, None) if kernel is None else kernel[:2], seen_read, seen_written,
            member.is_launcher,
        )  # fmt: skip
        if kernel is None:
            return one
        over = self._over(index, one)
        if index in self._pooled:
            self._bytes_of[index] = sum(over)
            return replace(one, kernel_read=kernel[0] - over[0], kernel_written=kernel[1] - over[1])
        past = [0, 0]
        if process.has_own_figures and not member.is_launcher:
            past = self._past(index, kernel, one, over)  # launchers map what ranks share (PMIx)
        names = ("unseen_read", "unseen_written", "past_calls_read", "past_calls_written")
        one = replace(one, **dict(zip(names, (*over, *past))))
        return replace(one, way=self._way(index, one)) if one.unseen else one

    @cached_property
    def _dirtied(self) -> np.ndarray:
        return dirtied_bytes(self._data)

    def groups(self) -> list[Group]:
        """after: figures_of() of all members."""
        made = [Group((one,), self._family.bytes_of(one)) for one in self._single]
        for reaper, some in self._pooled.items():
            made.append(Group(tuple(some), self._bytes_of.get(reaper)))
        return sorted(made, key=lambda group: group.programs[0].start_ticks)

    def _over(self, index: int, one: ProcessFigures) -> list[int]:
        """Bytes read and written by calls that the kernel counted and weir did not see."""
        passed_over = self._data.members[index].process.passed_over
        uncounted = [int(part[index]) for part in self._uncounted]
        read = (one.kernel_read or 0) - passed_over - one.seen_read + uncounted[0]
        written = (one.kernel_written or 0) - one.seen_written + uncounted[1]
        return _above_noise(read, written)

    def _past(
        self, index: int, kernel: list[int], one: ProcessFigures, over: list[int]
    ) -> list[int]:
        """Bytes read from storage and written to it without a call that the kernel counts."""
        own = 2 * self._data.members[index].process.own_written
        explained = one.seen_written + over[1] + own
        explained += int(self._shared[index])
        if kernel[3] > explained:
            explained += int(self._dirtied[index])
        more_read, more_written = kernel[2] - one.seen_read - over[0], max(0, kernel[3] - explained)
        return _past_calls(
            more_read, more_written, int(self._mapped[index]), bool(self._rings[index])
        )

    def _end(self, index: int) -> str:
        process = self._data.members[index].process
        if self._family.is_replaced(index):
            return END_KINDS[EXEC]
        if signal := self._data.signals.get(index):
            return signal_name(signal)
        return END_KINDS[process.end_kind] if process.end_kind < len(END_KINDS) else "unknown"

    def _way(self, index: int, one: ProcessFigures) -> str:
        member = self._data.members[index]
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


def _above_noise(read: int, written: int) -> list[int]:
    """Bytes that are more than libc and the loader bring in by themselves."""
    parts = ((read, _LOADER_BYTES), (written, NOISE_BYTES))
    return [part if part > noise else 0 for part, noise in parts]


def _named(data: StepData, index: int) -> str:
    process = data.members[index].process
    signal = data.signals.get(index)
    how = f", {signal_name(signal)}" if signal else ""
    return f"{process.command_line[:60]} (pid {process.pid}{how})"


def _past_calls(more_read: int, more_written: int, mapped: int, has_ring: bool) -> list[int]:
    """Bytes that came from storage and went there without a call that the kernel counts. A page of
    a mapping that is read in to be changed, and then written, counts once."""
    text = 0 if has_ring else _PROGRAM_TEXT_BYTES
    of_mapping = max(0, min(more_read, mapped))
    changed = 0 if has_ring else min(of_mapping, more_written)
    parts = (max(of_mapping, more_read - text) - changed, more_written)
    return [part if part > MOST_UNSEEN_BYTES else 0 for part in parts]


def _way(one: ProcessFigures, is_mapped: bool, has_ring: bool, no_room: str) -> str:
    ways = []
    if one.past_calls_read or one.past_calls_written:
        likely = "a mapping of files" if is_mapped else "libaio, io_uring or a mapping"
        ways.append("io_uring" if has_ring else likely)
    if one.unseen_read or one.unseen_written:
        direct = "direct system calls, or single characters through getc_unlocked and putc_unlocked"
        ways.append(f"its children: {no_room}" if no_room else direct)
    return "; ".join(ways)


def _evidence(data: StepData) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each member: bytes of files with storage that it mapped, bytes of what is no file
    (segments of MPI libraries are none, native/wire/paths.h), and rings whose requests no hook
    saw."""
    rings_made, entered, mmap = (op_named(name).value
        for name in ("io_uring_setup", "io_uring_enter", "mmap"))
    columns = data.as_storage(data.where(
        lambda some: np.isin(some.op, (rings_made, entered, mmap))))
    count, is_mmap = len(data.members), columns.op == mmap
    is_mapping = is_mmap & columns.is_file
    is_mapping &= ~np.isin(columns.name, _in_memory(data, np.unique(columns.name[is_mapping])))
    is_ring, enters = columns.op == rings_made, columns.op == entered
    mapped, shared, rings = (
        sums_by_member(columns, np.where(mask, part, 0), count)
        for mask, part in (
            (is_mapping, columns.bytes), (is_mmap & ~columns.is_file, columns.bytes),
            (is_ring, columns.calls - columns.errors),
        )
    )  # fmt: skip
    rings[np.unique(columns.member[enters])] = 0
    return mapped, shared, rings


def _in_memory(data: StepData, mapped: np.ndarray) -> list[int]:
    """Those of some names that have no storage."""
    found = set()
    for file, numbers in zip(data.files, data.name_numbers):
        for at in np.flatnonzero(np.isin(numbers, mapped)).tolist():
            if file.texts[at].startswith(_IN_MEMORY):
                found.add(int(numbers[at]))
    return sorted(found)


def _uncounted(data: StepData) -> list[np.ndarray]:
    """Bytes that each member read and wrote by calls that rchar and wchar leave out."""
    columns = data.sums.by_member
    is_uncounted = np.isin(columns.op, [op_named(name).value for name in _UNCOUNTED])
    parts = (np.where(columns.by_code(code) & is_uncounted, columns.moved, 0) for code in "RW")
    return [sums_by_member(columns, part, len(data.members)) for part in parts]


class _Family:
    """Who waited for whom: Linux adds the figures of a child to its parent when the parent waits
    for it. Figures are rchar, wchar, read_bytes, write_bytes."""

    def __init__(
        self, data: StepData, seen: tuple[np.ndarray, ...], untraced: list[Untraced]
    ) -> None:
        self._data = data
        self._left = [self._left_by(index, seen) for index in range(len(data.members))]
        self._members_of: dict[tuple[int, int], list[int]] = {}
        for index, member in enumerate(data.members):
            self._members_of.setdefault((member.file, member.process.pid), []).append(index)
        self._replaced = {one.starter for one in untraced if one.is_replaced}
        self._foster: dict[int, list[tuple[int, int]]] = {}
        self._final: dict[int, list[int]] = {}  # of those replaced by a program without records
        self._spawned: dict[int, list[list[int]]] = {}  # of children that left no records
        for one in untraced:
            if one.starter is None or not one.pid:
                continue
            if one.is_replaced:
                if one.figures is not None:
                    self._final[one.starter] = list(one.figures)
            elif one.figures is not None:
                self._spawned.setdefault(one.starter, []).append(list(one.figures))
            else:
                key = (data.members[one.starter].file, one.pid)
                self._foster.setdefault(one.starter, []).append(key)
        self._wholes = self._find_wholes()
        waits_for_untraced = any(self.reaper(one) == _JOB for one in untraced)
        self._by_job = None if waits_for_untraced else self._find_by_job()

    def is_replaced(self, index: int) -> bool:
        """Whether a program that left no records took the member's place."""
        return index in self._replaced

    def own(self, index: int) -> list[int] | None:
        """Figures of the member itself, with those of programs that left no records and whose own
        are not known; None: unknown."""
        process = self._data.members[index].process
        by_job = self._by_job if self._by_job and self._by_job[0] == index else None
        if by_job is not None:
            read, written = by_job[1]
            read -= process.kernel_read_before
            written -= process.kernel_written_before
            storage = [0, 0]  # the job's is not known
        elif process.io_known:
            read, written = process.kernel_read, process.kernel_written
            pairs = zip(process.kernel_storage_ever, process.kernel_storage_before)
            storage = [last - first for last, first in pairs]
        else:
            return None
        own = [read - process.own_read, written - process.own_written, *storage]
        if index not in self._replaced:
            for child in self._children(index):
                if by_job is not None or self._is_within(child, index):
                    own = [mine - its for mine, its in zip(own, self._wholes[child])]
        for its_figures in self._spawned.get(index, ()):
            own = [mine - its for mine, its in zip(own, its_figures)]
        return [max(0, part) for part in own]

    def without_figures(self, index: int) -> list[int]:
        """Children that were killed, and of which nobody could ask the kernel at their end."""
        return [
            child for child in self._children(index)
            if (one := self._data.members[child].process).whole and not one.end_ticks
            and one.end_kind != EXEC and child not in self._replaced
            and one.start_ticks >= self._data.members[index].process.start_ticks
        ]  # fmt: skip

    def bytes_of(self, one: Untraced) -> int | None:
        """Of a program without records whose figures are known: less what was there before it
        started, and what traced children of it brought in."""
        if one.figures is None or one.starter is None:
            return None
        member = self._data.members[one.starter]
        parts = list(one.figures[:2])
        others = [self._left[one.starter]] if one.is_replaced else []
        others += [
            self._wholes[child] for child in self._data.children.get((member.file, one.pid), ())
            if self._data.members[child].process.start_ticks >= one.start_ticks
        ]  # fmt: skip
        for its in others:
            parts = [mine - other for mine, other in zip(parts, its)]
        return sum(_above_noise(*parts))

    def reaper(self, one: Untraced) -> int | None:
        """The member whose figures have those of a program without records; _JOB: whoever started
        the step; None: nobody known."""
        if one.starter is None:
            return None
        if not one.is_replaced:
            return one.starter if self._data.members[one.starter].process.io_known else None
        member = self._data.members[one.starter]
        parents = [
            index for index in self._members_of.get((member.file, member.process.ppid), ())
            if self._data.members[index].process.start_ticks <= member.process.start_ticks
        ]  # fmt: skip
        if not parents:
            return _JOB
        parent = max(parents, key=lambda index: self._data.members[index].process.start_ticks)
        return parent if self._data.members[parent].process.io_known else None

    def job_excess(self) -> int | None:
        """Bytes of the job that no traced process at its root accounts for; None: unknown."""
        job = self._data.step.job
        if job is None or job.kernel_bytes is None:
            return None
        roots = self._roots()
        return max(0, sum(job.kernel_bytes) - sum(sum(self._wholes[root][:2]) for root in roots))

    def _roots(self) -> list[int]:
        """The last process of each pid whose parent left no records."""
        members = self._data.members
        keys = {
            (m.file, m.process.pid): None
            for m in members if (m.file, m.process.ppid) not in self._members_of
        }  # fmt: skip
        return [
            max(self._members_of[key], key=lambda index: members[index].process.start_ticks)
            for key in keys
        ]

    def _find_by_job(self) -> tuple[int, tuple[int, int]] | None:
        """The one process at the root of the job whose figures at its end are not known (it was
        killed, or ended by a system call that weir did not see), and what it read and wrote:
        what the job did and the others at its root did not. None: there is no such process."""
        job, members = self._data.step.job, self._data.members
        if job is None or job.kernel_bytes is None:
            return None
        roots = self._roots()
        silent = [
            root for root in roots
            if (one := members[root].process).whole and one.io_began and not one.end_ticks
            and root not in self._replaced
        ]  # fmt: skip
        if len(silent) != 1:
            return None
        others = [self._wholes[root][:2] for root in roots if root != silent[0]]
        read, written = (
            max(0, whole - sum(parts)) for whole, *parts in zip(job.kernel_bytes, *others)
        )
        return silent[0], (read, written)

    def _children(self, index: int) -> list[int]:
        member = self._data.members[index]
        keys = [(member.file, member.process.pid), *self._foster.get(index, ())]
        children = self._data.children
        return [child for key in keys for child in children.get(key, ()) if child != index]

    def _is_within(self, child: int, index: int) -> bool:
        process, one = self._data.members[index].process, self._data.members[child].process
        ended = one.end_ticks or one.last_ticks
        until = max(process.last_ticks, process.end_ticks)
        return one.io_began and process.start_ticks <= ended <= until

    def _find_wholes(self) -> list[list[int]]:
        """What the parent of each member finds: of one whose figures at its end are not known at
        least what its children brought in. A child is younger, whatever a damaged trace says."""
        members, wholes = self._data.members, [list(one) for one in self._left]
        order = [(one.process.start_ticks, index) for index, one in enumerate(members)]
        for _, index in sorted(order, reverse=True):
            if index in self._final:
                wholes[index] = self._final[index]
            elif index in self._replaced or not members[index].process.end_ticks:
                younger = [one for one in self._children(index) if order[one] > order[index]]
                theirs = [wholes[one] for one in younger]
                wholes[index] = [sum(parts) for parts in zip(wholes[index], *theirs)]
        return wholes

    def _left_by(self, index: int, seen: tuple[np.ndarray, ...]) -> list[int]:
        """Figures of a member at its end: those that weir saw when it was killed before it could
        ask the kernel once more."""
        process = self._data.members[index].process
        read, written = process.kernel_read_ever, process.kernel_written_ever
        if not process.end_ticks:
            read = max(read, process.kernel_read_before + int(seen[2][index]))
            more = int(seen[3][index]) + process.own_written
            written = max(written, process.kernel_written_before + more)
        return [read, written, *process.kernel_storage_ever]


def _seen(data: StepData) -> tuple[np.ndarray, ...]:
    """Application calls, own ns, bytes read and written of each member, exactly."""
    columns, count = data.sums.by_member, len(data.members)
    moved = (np.where(columns.by_code(code), columns.moved, 0) for code in "RW")
    parts = (columns.app_calls, columns.own_ns, *moved)
    calls, ns, read, written = (sums_by_member(columns, part, count) for part in parts)
    return calls, ns, read + _more_below(data, "R", count), written + _more_below(data, "W", count)


def _more_below(data: StepData, code: str, count: int) -> np.ndarray:
    """Bytes that the layers of each member moved more than its program asked for, file by file."""
    sums = np.zeros(count, np.int64)
    layered = data.layered.where((data.layered.layer < NOTES) & data.layered.by_code(code))
    if not len(layered):
        return sums
    by_layer = merged(layered, "member", "name", "layer")
    is_last = np.r_[(np.diff(by_layer.member) != 0) | (np.diff(by_layer.name) != 0), True]
    lowest = by_layer.where(is_last & (by_layer.layer > EVENTS))
    program = data.where(lambda some: some.by_code(code) & np.isin(some.name, lowest.name))
    files, at = np.unique(np.r_[file_keys(lowest), file_keys(program)], return_inverse=True)
    more = np.zeros(len(files), np.int64)
    np.add.at(more, at, np.r_[lowest.bytes, -program.moved])
    below = at[: len(lowest)]
    np.add.at(sums, lowest.member, np.maximum(more[below], 0))
    return sums


@figure
def unseen_of(step: StepReport) -> Unseen:
    """What the kernel counted and the trace does not have, of all processes of the step."""
    return unseen(step.data)


@figure
def running_of(step: StepReport) -> tuple[int, ...]:
    """Members that run still, on the machine that makes the report; without those that wait for the
    report itself."""
    data, node, waiting = step.data, os.uname().nodename, ancestors()
    replaced = {
        one.starter for group in unseen_of(step).groups for one in group.programs if one.is_replaced
    }
    return tuple(
        index
        for index, one in enumerate(member.process for member in data.members)
        if one.whole and not one.end_kind and index not in data.signals and index not in replaced
        and data.files[data.members[index].file].node == node and one.pid not in waiting
        and is_running(one.pid, one.exe, one.command, one.start_realtime_ns)
    )  # fmt: skip


@figure
def background_of(step: StepReport) -> tuple[int, ...]:
    """Those that run still though the command of `weir trace` has ended."""
    job = step.data.step.job
    has_ended = job is not None and job.ended_realtime_ns is not None
    return running_of(step) if has_ended else ()


def is_complete(report: Report) -> bool:
    """Whether the trace has all that the run did."""
    return all(map(is_step_complete, report.steps))


@figure
def is_step_complete(step: StepReport) -> bool:
    failed = any(member.process.failures for member in step.data.members)
    found = unseen_of(step)
    missing = found.is_much or found.untraced or step.data.has_no_rank or background_of(step)
    return not (step.lost_events or failed or step.data.problems or not step.data.files or missing)
