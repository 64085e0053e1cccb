# SPDX-License-Identifier: Apache-2.0
"""Bytes that the kernel counted beside bytes that weir saw, of all processes of a step: arrays by
member, and an object for each process that is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from weir.analysis.step import StepData
from weir.trace.children import signal_name
from weir.trace.process import END_KINDS, EXEC

MOST_UNSEEN_SHARE = 0.01
MOST_UNSEEN_BYTES = 1 << 20
NOISE_BYTES = 64 << 10  # libc's own requests (locales, name services), in each direction
_LOADER_BYTES = 256 << 10  # read by the loader: 832 of each of some 300 libraries
_LARGEST = 1 << 59  # of which several can be added up in 64 bits


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
class Figures:
    """The same of every member of a step, each an array; what a process is follows from its member.

    kernel_*: 0 where is_known is not set. ways: by member, of those with unseen bytes; replaced:
    members whose place a program took that left no records.
    """

    data: StepData
    calls: np.ndarray
    ns: np.ndarray
    is_known: np.ndarray
    kernel_read: np.ndarray
    kernel_written: np.ndarray
    seen_read: np.ndarray
    seen_written: np.ndarray
    unseen_read: np.ndarray
    unseen_written: np.ndarray
    past_calls_read: np.ndarray
    past_calls_written: np.ndarray
    ways: dict[int, str]
    replaced: frozenset[int]

    @property
    def unseen(self) -> np.ndarray:
        return (self.unseen_read + self.unseen_written
            + self.past_calls_read + self.past_calls_written)

    @property
    def counted(self) -> np.ndarray:
        return (self.kernel_read + self.kernel_written
            + self.past_calls_read + self.past_calls_written)

    @property
    def are_incomplete(self) -> np.ndarray:
        return (self.unseen > MOST_UNSEEN_BYTES) & (self.unseen > self.counted * MOST_UNSEEN_SHARE)

    @property
    def are_in_order(self) -> np.ndarray:
        """Whether the last that is known of a process is an orderly end."""
        kinds = of_processes(self.data, "end_kind")
        made = (kinds > 0) & (kinds <= EXEC)
        made[list(self.data.signals)] = False
        made[list(self.replaced)] = True
        return made

    def of(self, index: int) -> ProcessFigures:
        """Of one member."""
        data, member = self.data, self.data.members[index]
        process, is_known = member.process, bool(self.is_known[index])
        names = ("seen_read", "seen_written", "unseen_read", "unseen_written", "past_calls_read",
            "past_calls_written")
        return ProcessFigures(
            data.step.name, data.files[member.file].node, process.pid, member.rank,
            process.command_line, self.end_of(index), int(self.calls[index]),
            int(self.ns[index]) / 1e9,
            *(int(one[index]) if is_known else None
                for one in (self.kernel_read, self.kernel_written)),
            is_launcher=member.is_launcher, way=self.ways.get(index, ""),
            **{name: int(getattr(self, name)[index]) for name in names},
        )  # fmt: skip

    def end_of(self, index: int) -> str:
        kind = self.data.members[index].process.end_kind
        if index in self.replaced:
            return END_KINDS[EXEC]
        if signal := self.data.signals.get(index):
            return signal_name(signal)
        return END_KINDS[kind] if kind < len(END_KINDS) else "unknown"


def of_processes(data: StepData, field: str) -> np.ndarray:
    """A field of the process of each member."""
    return whole(list(map(attrgetter(f"process.{field}"), data.members)))


def whole(values: Any) -> np.ndarray:
    """Whole numbers to calculate with: those of Python where a damaged trace has one that is so
    large that sums of a few might not fit."""
    try:
        made = np.array(values, np.int64)
    except OverflowError:
        return np.array(values, object)
    fits = not made.size or (-_LARGEST < int(made.min()) and int(made.max()) < _LARGEST)
    return made if fits else made.astype(object)


def with_values(column: np.ndarray, at: Sequence[int], values: Iterable[int]) -> np.ndarray:
    """The column with other values at some places."""
    its = whole(list(values))
    made = column.astype(object) if its.dtype == object else column
    made[at] = its
    return made


def above_noise(read: Any, written: Any) -> list[Any]:
    """Bytes that are more than libc and the loader bring in by themselves; numbers or arrays."""
    parts = ((read, _LOADER_BYTES), (written, NOISE_BYTES))
    return [part * (part > noise) for part, noise in parts]
