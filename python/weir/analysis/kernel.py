# SPDX-License-Identifier: Apache-2.0
"""Bytes that the kernel counted beside bytes that weir saw, for each process: what is not seen shows itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weir.analysis.columns import Columns, merged
from weir.analysis.step import StepData
from weir.trace.ops import EVENTS, NOTES
from weir.trace.process import END_KINDS

BLIND_SHARE = 0.10
BLIND_BYTES = 1_000_000


@dataclass(frozen=True)
class ProcessFigures:
    """kernel_*: /proc/self/io over the life of the process, less what children that it waited for brought in and less the zeros
    that the recorder writes where its chunks will lie; None: unknown.


    seen_*: reads and writes of all names, pipes included; of a file under layers what reached the file system, where that is more
    (a task reads ahead, or writes what others left with it). is_blind: the kernel counted over 10 % + 1 MB more than was seen.
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

    @property
    def is_blind(self) -> bool:
        return _exceeds(self.kernel_read, self.seen_read) or _exceeds(self.kernel_written, self.seen_written)


def _exceeds(kernel: int | None, seen: int) -> bool:
    return kernel is not None and kernel > seen * (1 + BLIND_SHARE) + BLIND_BYTES


def process_figures(data: StepData, mask: np.ndarray) -> list[ProcessFigures]:
    """The chosen processes of a step, by rank (no task last), node and start."""
    seen, chunks = _seen(data), _chunk_bytes(data)
    left = _left_behind(data, seen, chunks)
    made = []
    for index in np.flatnonzero(mask).tolist():
        member = data.members[index]
        process = member.process
        read, written = _without_children(data, index, left)
        calls, ns, seen_read, seen_written = (int(column[index]) for column in seen)
        if written is not None:
            written -= min(chunks[index], max(0, written - seen_written))
        end = END_KINDS[process.end_kind] if process.end_kind < len(END_KINDS) else "unknown"
        figures = ProcessFigures(
            data.step.name, data.files[member.file].node, process.pid, member.rank, process.command_line, end, calls,
            ns / 1e9, read, written, seen_read, seen_written, member.is_launcher,
        )  # fmt: skip
        made.append((member.rank < 0, member.rank, figures.node, process.start_ticks, process.pid, index, figures))
    return [one[-1] for one in sorted(made, key=lambda one: one[:-1])]


def _seen(data: StepData) -> tuple[np.ndarray, ...]:
    """Application calls, own ns, bytes read and written of each member, exactly."""
    columns, count = data.columns, len(data.members)
    made = []
    for part in (columns.app_calls, columns.own_ns, *(np.where(columns.by_code(code), columns.moved, 0) for code in "RW")):
        sums = np.zeros(count, np.int64)
        np.add.at(sums, columns.member, part)
        made.append(sums)
    calls, ns, read, written = made
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
    files, at = np.unique(np.r_[_file_keys(lowest), _file_keys(program)], return_inverse=True)
    more = np.zeros(len(files), np.int64)
    np.add.at(more, at, np.r_[lowest.bytes, -program.moved])
    below = at[: len(lowest)]
    np.add.at(sums, lowest.member, np.maximum(more[below], 0))
    return sums


def _file_keys(columns: Columns) -> np.ndarray:
    """One number for a name in a member."""
    return columns.member.astype(np.int64) << 32 | columns.name.astype(np.int64) & 0xFFFFFFFF


def _chunk_bytes(data: StepData) -> list[int]:
    """Size of the chunks of each member."""
    sizes = np.zeros(len(data.members), np.int64)
    for index, file in enumerate(data.files):
        table = file.array("chunks")
        np.add.at(sizes, table["process"].astype(np.int64) + data.first_member(index), table["size_bytes"].astype(np.int64))
    return sizes.tolist()


def _without_children(data: StepData, index: int, left: list[tuple[int, int]]) -> tuple[int | None, int | None]:
    """Linux adds the figures of a child to its parent when the parent waits for it: those of traced children are taken out."""
    member = data.members[index]
    process = member.process
    if not process.io_known:
        return None, None
    read, written = process.kernel_read, process.kernel_written
    for child in data.children.get((member.file, process.pid), ()):
        one = data.members[child].process
        ended = one.end_ticks or one.last_ticks
        if one.io_began and process.start_ticks <= ended <= max(process.last_ticks, process.end_ticks):
            read -= left[child][0]
            written -= left[child][1]
    return max(0, read), max(0, written)


def _left_behind(data: StepData, seen: tuple[np.ndarray, ...], chunks: list[int]) -> list[tuple[int, int]]:
    """Bytes that each process read and wrote until its end, as its parent finds them: those that weir saw when it was killed
    before it could ask the kernel once more."""
    found = []
    for index, member in enumerate(data.members):
        process = member.process
        read, written = process.kernel_read_ever, process.kernel_written_ever
        if not process.end_ticks:
            read = max(read, process.kernel_read_before + int(seen[2][index]))
            written = max(written, process.kernel_written_before + int(seen[3][index]) + chunks[index])
        found.append((read, written))
    return found
