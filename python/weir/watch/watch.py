# SPDX-License-Identifier: Apache-2.0
"""A run that goes on: its steps and trace files, looked at again and again; when it is over."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import numpy as np

from weir.analysis.columns import Columns
from weir.analysis.exclusion import Exclusion, exclusion_of
from weir.analysis.names import NameTable
from weir.analysis.totals import Totals, totals
from weir.report.files.compute import FileTotals, file_totals
from weir.trace import DamagedFile, RunNotFound, Step, find_run
from weir.watch.follow import Follower

# so many looks without a living process, and a step that never reported its end has ended
QUIET_LOOKS = 3


@dataclass(frozen=True)
class Look:
    """What was done since the last look. elapsed_s: since the first step began; seconds: since the
    last look; bytes_read, bytes_written, calls, ns: of files, as weir report counts.

    active: ranks that did I/O; ranks: those that are known. files: by time, longest first. so_far:
    since the watch began with the first record, so the totals of the report at the end.
    """

    elapsed_s: float
    seconds: float
    steps: tuple[str, ...]
    ranks: int
    active: tuple[int, ...]
    calls: int
    bytes_read: int
    bytes_written: int
    ns: int
    files: tuple[FileTotals, ...]
    so_far: Totals
    is_over: bool

    def per_second(self, figure: int) -> float:
        return figure / self.seconds if self.seconds > 0 else 0.0


class Watch:
    """Looks at a run. The first look gives what was done before it, over the time since the first
    step began."""

    def __init__(self, path: str | os.PathLike[str], exclusion: Exclusion | None = None):
        self.path, self.names, self.exclusion = path, NameTable(), exclusion or exclusion_of()
        self.followers: dict[str, Follower] = {}
        self.ranks: dict[str, frozenset[int]] = {}
        self.alive: dict[str, int] = {}
        self.quiet: dict[str, int] = {}  # step -> looks in a row without a living process
        self.finished: set[str] = set()  # trace files read after their step had ended
        self.so_far = Totals()
        self.last: float | None = None

    def look(self) -> Look:
        """What was done since the last look. Raises RunNotFound when there is no run."""
        # before the trace is read: what is over now is read whole
        steps = find_run(self.path).steps
        over = {step.name for step in steps if self._has_ended(step)}
        parts = [part for step in steps for part in self._added(step, step.name in over)]
        elapsed, now = _elapsed_s(steps), time.monotonic()
        seconds, self.last = elapsed if self.last is None else now - self.last, now
        columns = Columns.joined(parts)
        columns = columns.where(columns.is_file)
        read = np.where(columns.by_code("R"), columns.moved, 0)
        summed = totals(columns)
        before = self.so_far
        self.so_far = Totals(before.calls + summed.calls, before.bytes + summed.bytes,
            before.ns + summed.ns, None)
        files = sorted(file_totals(columns, self.names), key=lambda one: (-one.ns, one.file))
        running = tuple(step.name for step in steps if step.name not in over)
        ranks = {rank for step in steps for path in step.files for rank in self.ranks.get(str(path),
            ()) if rank >= 0}
        return Look(
            elapsed, seconds, running, len(ranks),
            tuple(np.unique(columns.rank[columns.rank >= 0]).tolist()), summed.calls,
            int(read.sum()), summed.bytes - int(read.sum()), summed.ns, tuple(files), self.so_far,
            len(over) == len(steps),
        )  # fmt: skip

    def _added(self, step: Step, is_over: bool) -> list[Columns]:
        parts, alive = [], 0
        exclusion = self.exclusion.of_step(None if step.job is None else step.job.cwd)
        for path in map(str, step.files):
            if path in self.finished:
                continue
            follower = self.followers.setdefault(path, Follower(path, self.names, exclusion))
            try:
                added = follower.look()
            except DamagedFile:
                continue  # of no use yet, or for good: weir report says which
            parts.append(added.columns)
            alive += added.alive
            self.ranks[path] = added.ranks
            if is_over:
                self.finished.add(path)
                del self.followers[path]
        self.quiet[step.name] = 0 if alive or not step.files else self.quiet.get(step.name, 0) + 1
        return parts

    def _has_ended(self, step: Step) -> bool:
        """Reported by job.json; a launcher that was killed reports nothing, and a shell that traces
        (weir env) may go on at any time."""
        job = step.job
        if job is not None and job.ended_realtime_ns is not None:
            return True
        return (job is None or job.command is not None) and self.quiet.get(step.name,
            0) >= QUIET_LOOKS


def _elapsed_s(steps: tuple[Step, ...]) -> float:
    """From the start of the first step to now, or to the end of the last one; 0 where no step tells
    its start."""
    jobs = [step.job for step in steps if step.job is not None
        and step.job.started_realtime_ns is not None]
    if not jobs:
        return 0.0
    ends = [job.ended_realtime_ns for job in jobs]
    end = time.time_ns() if None in ends else max(ends)
    return max(0.0, (end - min(job.started_realtime_ns for job in jobs)) / 1e9)


def wait_for(path: str | os.PathLike[str], seconds: float) -> Watch:
    """A watch on a run that may not be there yet. Raises RunNotFound when it is not there after so
    many seconds."""
    until = time.monotonic() + seconds
    while True:
        try:
            find_run(path)
            return Watch(path)
        except RunNotFound:
            if time.monotonic() >= until:
                raise
            time.sleep(min(0.1, max(0.0, until - time.monotonic())))
