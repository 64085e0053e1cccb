# SPDX-License-Identifier: Apache-2.0
"""What findings are functions of: each file of a run with its reads, writes, other calls and their
cost, out of the tables of `weir report`, and what is known of its file system."""

from __future__ import annotations

import math
import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from weir.advise.frame.files import File, Files, Way
from weir.advise.frame.saving import NOTHING, Range, Saving, saved
from weir.advise.frame.speeds import NOT_PROBED, Probed, Speeds, scaling, speeds_of
from weir.analysis.names import shown
from weir.report.file_systems.compute import Mount, mount_in
from weir.report.files.compute import file_table_of, files_of
from weir.report.frame.build import Report, StepReport
from weir.report.layers.compute import layers_of
from weir.report.mpi_io.compute import Access, MpiFile, mpi_files_of
from weir.report.mpi_io.definitions import Within, within_definitions_of
from weir.report.mpi_io.functions import functions_of
from weir.report.patterns.compute import patterns_of
from weir.report.waits.last_files import waits_of
from weir.report.wall.compute import wall_time_of
from weir.report.wall.critical import critical_by_file

__all__ = ["Facts", "File", "Files", "Way"]

# Where ranks of a node share the kernel's cache: layers that share blocks bypass these.
LOCAL = ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "tmpfs", "ramfs", "overlay", "f2fs",
    "hugetlbfs", "squashfs")  # fmt: skip
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
    def files(self) -> Files:
        """By path, those that are traced at level detail at least."""
        return Files(file_table_of(self.report), patterns_of(self.report), self.report.names,
            self._critical)

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
        return bool(self.files.written.any())

    @cached_property
    def bare(self) -> list[File]:
        """Those that no layer has yet."""
        return self.files.chosen(self.are_bare)

    @cached_property
    def are_bare(self) -> np.ndarray:
        """A mask of these among all files."""
        return ~self.files.mask(one.file for one in layers_of(self.report))

    def among(self, mask: np.ndarray) -> list[File]:
        """The files that no layer has yet and that a mask of all chooses."""
        return self.files.chosen(self.are_bare & mask)

    def forget(self) -> None:
        """Give up what is known of each file: it is found again where it is asked for."""
        for name in ("files", "bare", "are_bare"):
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
        found = self._on_path
        if found is None:
            return None
        whole_ns = self.report.all.ns
        share = min(1.0, found[0] / whole_ns) if whole_ns else 0.0
        return {one.file: one.ns * share for one in files_of(self.report)}

    @cached_property
    def _on_path(self) -> tuple[int, int] | None:
        """Of a run without MPI: ns of I/O of the first thread of what one waits for, and of its
        other threads while that one makes no call."""
        io_ns = background_ns = 0
        for step in self.report.steps:
            wall = wall_time_of(step)
            if wall is None:
                return None
            last = int(wall.end_ns.argmax())
            io_ns += int(wall.of_ranks.io_ns[last])
            background_ns += int(wall.of_ranks.background_ns[last])
        return io_ns, background_ns

    @cached_property
    def _at_most(self) -> float:
        """How many times as much as is known the I/O may delay the run: a first thread that makes
        no call either computes or waits for other threads, as those of a pool, which no trace of
        calls tells apart."""
        if any(one is not None for one in waits_of(self.report)):
            return 1.0
        found = self._on_path
        return 1.0 if found is None or not found[0] else sum(found) / found[0]

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
    def within_definitions(self) -> dict[str, Within]:
        """By file: the requests within calls of netCDF-C and PnetCDF that define."""
        found: dict[str, Within] = {}
        for step in self.report.steps:
            for path, one in within_definitions_of(step).items():
                found[path] = found.get(path, Within()) + one
        return found

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
        critical = Range(critical.low, critical.high * self._at_most).at_most(io.high)
        is_known = self._critical is not None
        active_ns, whole = self.report.active_ns, self.report.all.ns
        active = io.times(min(1.0, active_ns / whole)) if active_ns and whole else None
        active, critical = (one and one.at_most(self.wall_s) for one in (active, critical))
        return Saving(io, active, critical if is_known else None, max(0, requests))


def _accesses(step: StepReport) -> Iterator[tuple[MpiFile, Access]]:
    for one in mpi_files_of(step):
        yield one, one.reads
        yield one, one.writes
