# SPDX-License-Identifier: Apache-2.0
"""Bytes that the kernel counted beside bytes that weir saw, for each process: what is not seen shows itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np

from weir.analysis.columns import Columns, file_keys, merged, sums_by_member
from weir.analysis.dirtied import dirtied_bytes
from weir.analysis.starts import Untraced, untraced_programs
from weir.analysis.step import StepData
from weir.trace import TraceFile
from weir.trace.ops import EVENTS, NOTES, op_named
from weir.trace.process import END_KINDS

MOST_UNSEEN_SHARE = 0.01
MOST_UNSEEN_BYTES = 1 << 20
NOISE_BYTES = 64 << 10  # libc's own requests (locales, name services): of a process, in each direction
_LOADER_BYTES = 256 << 10  # read by the loader: 832 of each of some 300 libraries
_PROGRAM_TEXT_BYTES = 512 << 20  # the loader maps programs and libraries: taken for those as long as nothing says otherwise
_IN_MEMORY = ("/dev/shm/", "/memfd:")  # file systems without storage
_UNCOUNTED = ("splice", "splice_in", "async_read", "async_write")  # by rchar and wchar


def is_unseen(unseen: int, counted: int) -> bool:
    """Whether so much of what the kernel counted was not seen that a report is not the whole truth."""
    return unseen > MOST_UNSEEN_BYTES and unseen > counted * MOST_UNSEEN_SHARE


@dataclass(frozen=True)
class ProcessFigures:
    """kernel_*: rchar and wchar of /proc/self/io over the life of the process, less what children that it waited for brought in and
    what the recorder itself read and wrote; None: unknown.

    seen_*: reads and writes of all names, pipes included; of a file under layers what reached the file system, where that is more
    (a task reads ahead, or writes what others left with it). unseen_*: what the kernel counted more, beside what streams passed over;
    past_calls_*: bytes that went to or came from storage without a call that the kernel counts (mappings, libaio, io_uring), roughly.
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
        return self.unseen_read + self.unseen_written + self.past_calls_read + self.past_calls_written

    @property
    def counted(self) -> int:
        """What the kernel counted for the process."""
        return (self.kernel_read or 0) + (self.kernel_written or 0) + self.past_calls_read + self.past_calls_written

    @property
    def is_blind(self) -> bool:
        return is_unseen(self.unseen, self.counted)


@dataclass(frozen=True)
class Group:
    """Programs that left no records and whose bytes the kernel added to one process that waited for them. bytes: None: unknown."""

    programs: tuple[Untraced, ...]
    bytes: int | None

    @property
    def matters(self) -> bool:
        return self.bytes is None or self.bytes > NOISE_BYTES or any(one.rank >= 0 for one in self.programs)


@dataclass(frozen=True)
class Unseen:
    """What a step's report does not have. counted: by the kernel, of all processes; groups: programs without records."""

    counted: int
    processes: tuple[ProcessFigures, ...]
    groups: tuple[Group, ...]

    @property
    def bytes(self) -> int:
        return sum(one.unseen for one in self.processes) + sum(one.bytes or 0 for one in self.groups)

    @property
    def untraced(self) -> tuple[Untraced, ...]:
        return tuple(one for group in self.groups if group.matters for one in group.programs)

    @property
    def is_much(self) -> bool:
        return is_unseen(self.bytes, self.counted)


def process_figures(data: StepData, mask: np.ndarray) -> list[ProcessFigures]:
    """The chosen processes of a step, by rank (no task last), node and start."""
    figures = _account(data)[0]
    made = []
    for index in np.flatnonzero(mask).tolist():
        member, one = data.members[index], figures[index]
        made.append((member.rank < 0, member.rank, one.node, member.process.start_ticks, one.pid, index, one))
    return [one[-1] for one in sorted(made, key=lambda one: one[:-1])]


def unseen(data: StepData) -> Unseen:
    """Of all processes of a step."""
    figures, groups = _account(data)
    groups = [group for group in groups if not all(one.is_own for one in group.programs)]
    counted = sum(one.counted for one in figures) + sum(one.bytes or 0 for one in groups)
    return Unseen(counted, tuple(one for one in figures if one.unseen), tuple(groups))


_JOB = -1  # whoever started the step waits for what has no traced parent
_accounts: WeakKeyDictionary[TraceFile, tuple[list[ProcessFigures], list[Group]]] = WeakKeyDictionary()


def _account(data: StepData) -> tuple[list[ProcessFigures], list[Group]]:
    """Figures of every member, and the programs without records by who waited for them."""
    if not data.files:
        return [], []
    if data.files[0] not in _accounts:
        _accounts[data.files[0]] = _make_account(data)
    return _accounts[data.files[0]]


def _make_account(data: StepData) -> tuple[list[ProcessFigures], list[Group]]:
    seen, uncounted = _seen(data), _uncounted(data)
    untraced = untraced_programs(data)
    family = _Family(data, seen, untraced)
    groups: dict[int | None, list[Untraced]] = {}
    for one in untraced:
        groups.setdefault(family.reaper(one), []).append(one)
    figures, bytes_of = [], {}
    (mapped, shared, rings), dirtied = _evidence(data), dirtied_bytes(data.columns, len(data.members))
    for index, member in enumerate(data.members):
        process = member.process
        calls, ns, seen_read, seen_written = (int(column[index]) for column in seen)
        kernel = family.own(index)
        end = END_KINDS[process.end_kind] if process.end_kind < len(END_KINDS) else "unknown"
        one = ProcessFigures(
            data.step.name, data.files[member.file].node, process.pid, member.rank, process.command_line, end, calls,
            ns / 1e9, *(None, None) if kernel is None else kernel[:2], seen_read, seen_written, member.is_launcher,
        )  # fmt: skip
        if kernel is not None:
            over_read = kernel[0] - process.passed_over - seen_read + int(uncounted[0][index])
            over_written = kernel[1] - seen_written + int(uncounted[1][index])
            parts = [int(part) if part > noise else 0 for part, noise in ((over_read, _LOADER_BYTES), (over_written, NOISE_BYTES))]
            if index in groups:
                bytes_of[index] = sum(parts)
                one = replace(one, kernel_read=kernel[0] - parts[0], kernel_written=kernel[1] - parts[1])
                parts = [0, 0]
            elif process.has_own_figures and not member.is_launcher:  # whose mappings are segments shared with its tasks (PMIx)
                explained = seen_written + parts[1] + 2 * process.own_written + int(dirtied[index]) + int(shared[index])
                more_read, more_written = kernel[2] - seen_read - parts[0], max(0, kernel[3] - explained)
                parts += _past_calls(more_read, more_written, int(mapped[index]), bool(rings[index]))
            one = replace(one, **dict(zip(("unseen_read", "unseen_written", "past_calls_read", "past_calls_written"), parts)))
            if one.unseen:
                one = replace(one, way=_way(one, bool(mapped[index]), bool(rings[index]), data.files[member.file].no_room))
        figures.append(one)
    job = family.job_excess()
    if _JOB in groups:
        bytes_of[_JOB] = job
    return figures, [Group(tuple(some), bytes_of.get(reaper)) for reaper, some in groups.items()]


def _past_calls(more_read: int, more_written: int, mapped: int, has_ring: bool) -> list[int]:
    """Bytes that came from storage and went there without a call that the kernel counts. A page of a mapping that is read in
    to be changed, and then written, counts once."""
    text = 0 if has_ring else _PROGRAM_TEXT_BYTES
    of_mapping = max(0, min(more_read, mapped))
    changed = 0 if has_ring else min(of_mapping, more_written)
    return [part if part > MOST_UNSEEN_BYTES else 0 for part in (max(of_mapping, more_read - text) - changed, more_written)]


def _way(one: ProcessFigures, is_mapped: bool, has_ring: bool, no_room: str) -> str:
    ways = []
    if one.past_calls_read or one.past_calls_written:
        ways.append("io_uring" if has_ring else "a mapping of files" if is_mapped else "libaio, io_uring or a mapping")
    if one.unseen_read or one.unseen_written:
        ways.append(f"its children: {no_room}" if no_room else "direct system calls, or single characters through getc_unlocked and putc_unlocked")
    return "; ".join(ways)


def _evidence(data: StepData) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each member: bytes of files with storage that it mapped, bytes of what is no file (segments of MPI libraries are none,
    native/wire/paths.h), and rings whose requests no hook saw."""
    columns, count = data.columns, len(data.members)
    is_mmap = columns.op == op_named("mmap").value
    is_mapping = is_mmap & columns.is_file
    is_mapping &= ~np.isin(columns.name, _in_memory(data, np.unique(columns.name[is_mapping])))
    is_ring, enters = columns.op == op_named("io_uring_setup").value, columns.op == op_named("io_uring_enter").value
    mapped, shared, rings = (
        sums_by_member(columns, np.where(mask, part, 0), count)
        for mask, part in (
            (is_mapping, columns.bytes), (is_mmap & ~columns.is_file, columns.bytes), (is_ring, columns.calls - columns.errors),
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
    """Bytes that each member read and wrote by calls that the kernel's rchar and wchar leave out."""
    columns = data.columns
    is_uncounted = np.isin(columns.op, [op_named(name).value for name in _UNCOUNTED])
    parts = (np.where(columns.by_code(code) & is_uncounted, columns.moved, 0) for code in "RW")
    return [sums_by_member(columns, part, len(data.members)) for part in parts]


class _Family:
    """Who waited for whom: Linux adds the figures of a child to its parent when the parent waits for it. Figures are rchar, wchar, read_bytes,
    write_bytes."""

    def __init__(self, data: StepData, seen: tuple[np.ndarray, ...], untraced: list[Untraced]) -> None:
        self._data = data
        self._left = [self._left_by(index, seen) for index in range(len(data.members))]
        self._members_of: dict[tuple[int, int], list[int]] = {}
        for index, member in enumerate(data.members):
            self._members_of.setdefault((member.file, member.process.pid), []).append(index)
        self._replaced = {one.starter for one in untraced if one.is_replaced}
        self._foster: dict[int, list[tuple[int, int]]] = {}
        for one in untraced:
            if one.starter is not None and not one.is_replaced and one.pid:
                self._foster.setdefault(one.starter, []).append((data.members[one.starter].file, one.pid))

    def own(self, index: int) -> list[int] | None:
        """Figures of the member itself, with those of programs that left no records; None: unknown."""
        process = self._data.members[index].process
        if not process.io_known:
            return None
        own = [
            process.kernel_read - process.own_read, process.kernel_written - process.own_written,
            *(last - first for last, first in zip(process.kernel_storage_ever, process.kernel_storage_before)),
        ]  # fmt: skip
        if index not in self._replaced:
            for child in self._children(index):
                one = self._data.members[child].process
                ended = one.end_ticks or one.last_ticks
                if one.io_began and process.start_ticks <= ended <= max(process.last_ticks, process.end_ticks):
                    own = [mine - its for mine, its in zip(own, self._whole(child))]
        return [max(0, part) for part in own]

    def reaper(self, one: Untraced) -> int | None:
        """The member whose figures have those of a program without records; _JOB: whoever started the step; None: nobody known."""
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
        members = self._data.members
        keys = {(m.file, m.process.pid): None for m in members if (m.file, m.process.ppid) not in self._members_of}
        roots = [max(self._members_of[key], key=lambda index: members[index].process.start_ticks) for key in keys]
        return max(0, sum(job.kernel_bytes) - sum(sum(self._whole(root)[:2]) for root in roots))

    def _children(self, index: int) -> list[int]:
        member = self._data.members[index]
        keys = [(member.file, member.process.pid), *self._foster.get(index, ())]
        return [child for key in keys for child in self._data.children.get(key, ()) if child != index]

    def _whole(self, index: int) -> list[int]:
        """What the member's parent finds: of one that was replaced by a program without records at least what that one waited for."""
        whole = self._left[index]
        if index in self._replaced:
            for child in self._children(index):
                whole = [mine + its for mine, its in zip(whole, self._left[child])]
        return whole

    def _left_by(self, index: int, seen: tuple[np.ndarray, ...]) -> list[int]:
        """Figures of a member at its end: those that weir saw when it was killed before it could ask the kernel once more."""
        process = self._data.members[index].process
        read, written = process.kernel_read_ever, process.kernel_written_ever
        if not process.end_ticks:
            read = max(read, process.kernel_read_before + int(seen[2][index]))
            written = max(written, process.kernel_written_before + int(seen[3][index]) + process.own_written)
        return [read, written, *process.kernel_storage_ever]


def _seen(data: StepData) -> tuple[np.ndarray, ...]:
    """Application calls, own ns, bytes read and written of each member, exactly."""
    columns, count = data.columns, len(data.members)
    parts = (columns.app_calls, columns.own_ns, *(np.where(columns.by_code(code), columns.moved, 0) for code in "RW"))
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
    program = data.columns.where(data.columns.by_code(code) & np.isin(data.columns.name, lowest.name))
    files, at = np.unique(np.r_[file_keys(lowest), file_keys(program)], return_inverse=True)
    more = np.zeros(len(files), np.int64)
    np.add.at(more, at, np.r_[lowest.bytes, -program.moved])
    below = at[: len(lowest)]
    np.add.at(sums, lowest.member, np.maximum(more[below], 0))
    return sums
