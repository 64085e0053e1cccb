# SPDX-License-Identifier: Apache-2.0
"""What findings are functions of: each file of a run with its reads, writes, other calls and their
cost, out of the tables of `weir report`, and what is known of its file system."""

from __future__ import annotations

import math
import posixpath
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import add
from typing import Any

import numpy as np

from weir.advise.frame.saving import NOTHING, Range, Saving, saved
from weir.advise.frame.speeds import NOT_PROBED, Probed, Speeds, scaling, speeds_of
from weir.analysis.names import shown
from weir.report.file_systems.compute import Mount, mount_in
from weir.report.files.compute import FileOp, FileTotals, files_of
from weir.report.frame.build import Report, StepReport
from weir.report.layers.compute import layers_of
from weir.report.mpi_io.compute import Access, MpiFile, mpi_files_of
from weir.report.mpi_io.functions import functions_of
from weir.report.patterns.compute import WAYS, patterns_of
from weir.report.waits.last_files import waits_of
from weir.report.wall.compute import wall_time_of
from weir.report.wall.critical import critical_by_file
from weir.trace.ops import POSIX, STDIO, ops

_SUMMED = ("calls", "bytes", "ns", "adjacent", "first", "strided", "random", "unknown", "again",
    "switches", "off_block", "off_stripe", "interleaved")  # fmt: skip
_OTHERS = ("ranks", "begin", "end", "stripe", "slowest_ns", "longest_ns")
_NAMES = (*_SUMMED, *_OTHERS, "users", "steps")
_NO_FIGURES = array("q", [2**62 if name == "begin" else 0 for name in _NAMES])
_LARGEST = ("ranks", "end", "stripe", "longest_ns")
_ROWS_AT_ONCE = 4096
_SEEKS = ("lseek", "fseek", "rewind")
# Where ranks of a node share the kernel's cache: layers that share blocks bypass these.
LOCAL = ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "tmpfs", "ramfs", "overlay", "f2fs",
    "hugetlbfs", "squashfs")  # fmt: skip


class Way:
    """Reads or writes of a file, all ranks and steps together; figures as in the table
    `access_patterns`. ranks: the most in a step; users: of all steps; begin, end: the range of
    bytes that moved; longest_ns: of one call. Figures lie side by side: many files have as many."""

    __slots__ = ("figures",)

    def __init__(self) -> None:
        self.figures = _NO_FIGURES

    (
        calls, bytes, ns, adjacent, first, strided, random, unknown, again, switches, off_block,
        off_stripe, interleaved, ranks, begin, end, stripe, slowest_ns, longest_ns, users, steps,
    ) = (property(lambda self, at=at: self.figures[at]) for at in range(len(_NAMES)))  # fmt: skip

    @property
    def seconds(self) -> float:
        return self.ns / 1e9

    @property
    def span(self) -> int:
        """Bytes of the file between the first and the last one that moved."""
        return max(0, self.end - self.begin)

    @property
    def mean_bytes(self) -> float:
        return self.bytes / self.calls if self.calls else 0.0

    @property
    def call_s(self) -> float:
        return self.ns / 1e9 / self.calls if self.calls else 0.0

    @property
    def outlier_s(self) -> float:
        """Of the longest call what is more than the mean."""
        return max(0.0, self.longest_ns / 1e9 - self.call_s)


@dataclass(slots=True)
class File:
    """One file under its last name. ops: calls, bytes, ns by operation; critical_ns: what of its
    I/O delays the run, None where that is not known."""

    path: str
    read: Way = field(default_factory=Way)
    write: Way = field(default_factory=Way)
    totals: FileTotals | None = None
    critical_ns: float | None = None

    @property
    def ns(self) -> int:
        return self.totals.ns if self.totals is not None else self.read.ns + self.write.ns

    @property
    def written(self) -> int:
        """Bytes written, also at level detail, which has no order of calls."""
        if self.write.calls or self.totals is None:
            return self.write.bytes
        return self.totals.bytes_written

    def of(self, names: Sequence[str]) -> tuple[int, int]:
        """Calls and ns of operations."""
        every = self.totals.ops if self.totals is not None else ()
        chosen = [one for one in every if one.op in names]
        return sum(one.calls for one in chosen), sum(one.ns for one in chosen)

    def in_order(self, way: Way) -> float:
        """Share of calls that go on where the rank's last one ended, or at a distance that comes
        again: what read-ahead finds. Calls at offsets that are not known are in order where hardly
        any call moves the position."""
        if not way.calls:
            return 0.0
        is_stream = 2 * self.of(_SEEKS)[0] <= way.calls
        known = way.adjacent + way.first + way.strided
        return (known + way.unknown * is_stream) / way.calls

    def of_class(self, letters: str) -> tuple[int, int]:
        """Calls and ns of the classes of operations, calls of the application's alone."""
        every = self.totals.ops if self.totals is not None else ()
        chosen = [one for one in every if _class(one.op) in letters]
        return sum(one.calls - one.below for one in chosen), sum(one.ns for one in chosen)


    def requests(self, letter: str) -> int:
        """Reads (R) or writes (W) that reach the system without layers: its calls, also those that
        Fortran and libraries make, whose own are left out; of streams as many as their buffers
        make."""
        every = self._moving(letter)
        calls = sum(one.calls for one in every if _OPS[one.op].layer == POSIX)
        streams = [one for one in every if _OPS[one.op].layer == STDIO]
        buffered = min(sum(one.calls for one in streams),
            math.ceil(sum(one.bytes for one in streams) / STREAM_BYTES))
        return calls + buffered

    def on_streams(self, letter: str) -> int:
        """Such calls on streams of the C library."""
        return sum(one.calls for one in self._moving(letter) if _OPS[one.op].layer == STDIO)

    def _moving(self, letter: str) -> list[FileOp]:
        return [] if self.totals is None else [one for one in self.totals.ops
            if _OPS[one.op].op_class == letter]


def _class(op: str) -> str:
    return _CLASSES.get(op, "")


_OPS = {one.name: one for one in ops().values()}
_CLASSES = {name: one.op_class for name, one in _OPS.items()}
# A stream's buffer is st_blksize of its file: the least that there is, which testfs has as well.
STREAM_BYTES = 4096


TIER = "/dev/shm/weir-tier"  # memory of the node


@dataclass(frozen=True)
class Facts:
    """probes: what `weir probe` measured, by mount point. tier: the directory for the layer stage.
    """

    report: Report
    probes: Mapping[str, Probed] = field(default_factory=dict)
    tier: str = TIER

    @property
    def wall_s(self) -> float:
        return self.report.wall_ns / 1e9

    @cached_property
    def files(self) -> dict[str, File]:
        """By path, those that are traced at level detail at least."""
        found = {one.file: File(one.file, totals=one) for one in files_of(self.report)}
        for path, number, figures in _pattern_rows(self.report):
            file = found.get(path)
            if file is None:
                file = found[path] = File(path)
            _add(file.read if number == 0 else file.write, figures)
        critical = self._critical
        for file in found.values():
            file.critical_ns = None if critical is None else critical.get(file.path, 0.0)
        return found

    @cached_property
    def directories(self) -> set[str]:
        """All directories above files."""
        found: set[str] = set()
        for path in self.files:
            while (path := posixpath.dirname(path)) not in found:
                found.add(path)
        return found

    @cached_property
    def is_writing(self) -> bool:
        return any(one.written for one in self.files.values())

    @cached_property
    def bare(self) -> list[File]:
        """Those that no layer has yet."""
        layered = {one.file for one in layers_of(self.report)}
        return [one for one in self.files.values() if one.path not in layered]

    def forget(self) -> None:
        """Give up what is known of each file: it is found again where it is asked for."""
        for name in ("files", "bare"):
            vars(self).pop(name, None)

    @cached_property
    def _critical(self) -> dict[str, float] | None:
        """By file: what its I/O delays the run by."""
        if any(one is not None for one in waits_of(self.report)):
            return {path: float(ns) for path, ns in critical_by_file(self.report).items()}
        return self._serial

    @cached_property
    def _serial(self) -> dict[str, float] | None:
        """The same of a run without MPI: its process that ends last, with the commands that it
        started, is what one waits for."""
        path_ns = whole_ns = 0
        for step in self.report.steps:
            wall = wall_time_of(step)
            if wall is None:
                return None
            path_ns += int(wall.of_ranks.io_ns[int(wall.end_ns.argmax())])
            whole_ns += step.all.ns
        share = min(1.0, path_ns / whole_ns) if whole_ns else 0.0
        return {one.file: one.ns * share for one in files_of(self.report)}

    @cached_property
    def functions(self) -> dict[str, Counter[str]]:
        """By file: calls of netCDF-C and PnetCDF that define, or flush, by function."""
        found: dict[str, Counter[str]] = {}
        for step in self.report.steps:
            for path, calls in functions_of(step).items():
                found[path] = found.get(path, Counter()) + calls
        return found

    def called(self, file: File, names: Sequence[str]) -> int:
        """Of these functions on the file."""
        calls = self.functions.get(file.path)
        return sum(calls[name] for name in names) if calls is not None else 0

    @cached_property
    def ranks(self) -> int:
        return max((step.rank_count for step in self.report.steps), default=1)

    @cached_property
    def nodes(self) -> int:
        return max((step.data.nodes_of_ranks for step in self.report.steps), default=1)

    def mount(self, path: str) -> Mount:
        return mount_in(self.report, path)

    def is_local(self, path: str) -> bool:
        return self.mount(path).kind in LOCAL

    @cached_property
    def movers(self) -> int:
        """Ranks that move bytes, the most of a step."""
        return max((sum(1 for rank, one in step.by_rank.items() if rank >= 0 and one.bytes)
            for step in self.report.steps), default=1)

    @cached_property
    def has_collectives(self) -> bool:
        """Whether ranks move a file by collective calls of MPI-IO."""
        return any(access.collective for step in self.report.steps
            for _, access in _accesses(step))

    def is_collective(self, step: StepReport) -> bool:
        """Whether most bytes of a step are moved by collective calls of most ranks: which of them
        make the requests is MPI's choice then."""
        moved = sum(access.system_bytes for one, access in _accesses(step)
            if access.collective > access.independent and 2 * one.ranks > step.rank_count)
        return 2 * moved >= step.all.bytes > 0

    def probed(self, path: str) -> Probed:
        return self.probes.get(self.mount(path).point, NOT_PROBED)

    def speeds(self, path: str, way: str, ranks: int | None = None) -> Speeds:
        """ranks: that move bytes of the file system at the same time, all that do so as a rule."""
        count = max(1, self.movers if ranks is None else ranks)
        return speeds_of(self.probed(path), way, count, math.ceil(count / max(1, self.nodes)))

    def scaling(self, path: str, way: str, have: int, wanted: int) -> Range:
        """Share of its time that I/O of the file becomes shorter by with other ranks."""
        return scaling(self.probed(path), way, have, wanted)

    def shown(self, path: str) -> str:
        return shown(path, self.report.cwd)

    def on_tier(self, file: File, after: Range) -> Range:
        """Seconds that a file on a tier in memory saves, of what its calls take there. Calls on a
        file system of the node itself are copies into memory as well, and may take as long there.
        """
        whole_s = file.ns / 1e9
        high = max(after.high, whole_s) if self.is_local(file.path) else after.high
        return saved(whole_s, Range(after.low, high))

    def saving(self, parts: Sequence[tuple[File, Range]], requests: int) -> Saving:
        """parts: files with the I/O seconds that are saved on each, which are never more than its
        I/O. Active and critical time go with the I/O of the file."""
        io, critical = NOTHING, NOTHING
        for file, range_ in parts:
            part = range_.at_most(file.ns / 1e9)
            io += part
            critical += part.times((file.critical_ns or 0.0) / file.ns if file.ns else 0.0)
        is_known = self._critical is not None
        active_ns, whole = self.report.active_ns, self.report.all.ns
        active = io.times(min(1.0, active_ns / whole)) if active_ns and whole else None
        active, critical = (one and one.at_most(self.wall_s) for one in (active, critical))
        return Saving(io, active, critical if is_known else None, max(0, requests))


def _accesses(step: StepReport) -> Iterator[tuple[MpiFile, Access]]:
    for one in mpi_files_of(step):
        yield one, one.reads
        yield one, one.writes


def _pattern_rows(report: Report) -> Iterator[tuple[str, int, array[int]]]:
    """Path, direction and figures of each row of the table of access patterns."""
    rows = patterns_of(report)
    names, (name, way) = report.names, rows.columns("name", "way")
    figures = np.column_stack([*rows.columns(*_SUMMED, *_OTHERS), *rows.columns("ranks"),
        np.ones(len(rows), np.int64)])  # fmt: skip
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        some = slice(first, first + _ROWS_AT_ONCE)
        for number, direction, row in zip(name[some].tolist(), way[some].tolist(), figures[some]):
            yield names[number], direction, array("q", row.tobytes())


def _add(into: Way, figures: array[int]) -> None:
    if not into.steps:  # of nearly all files
        into.figures = figures
        return
    before, into.figures = into.figures, figures
    for at, name in enumerate(_NAMES):
        one, other = before[at], figures[at]
        how = max if name in _LARGEST else min if name == "begin" else add
        figures[at] = how(one, other)
