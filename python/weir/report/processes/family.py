# SPDX-License-Identifier: Apache-2.0
"""Whose figures have those of whom: what the kernel counted of each process without its children.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from weir.analysis.step import StepData
from weir.report.processes.figures import above_noise, of_processes, whole, with_values
from weir.report.processes.starts import Moved, Untraced
from weir.trace.process import EXEC

JOB = -1  # whoever started the step waits for what has no traced parent


class Family:
    """Who waited for whom: Linux adds the figures of a child to its parent when the parent waits
    for it. Figures are rchar, wchar, read_bytes, write_bytes."""

    def __init__(
        self, data: StepData, seen: tuple[np.ndarray, ...], untraced: list[Untraced],
        moved: list[Moved],
    ) -> None:  # fmt: skip
        """untraced, moved: see untraced_programs()."""
        self._data = data
        self._left = self._left_by(seen)
        # members whose place a program took that left no records
        self.replaced = {one.starter for one in untraced if one.is_replaced}
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
        self._adopted: set[tuple[int, int]] = set()  # by file and pid
        for one in moved:
            self._adopt(one.file, one.member)
            self.replaced |= {one.replaced} - {None}
        self._wholes: dict[int, list[int]] = {}  # of others than those who left as much
        self._find_wholes()
        waits_for_untraced = any(self.reaper(one) == JOB for one in untraced)
        self._by_job = None if waits_for_untraced else self._find_by_job()

    def _adopt(self, file: int, child: int) -> None:
        """A program on another node is the child of the process that waits for it on this one."""
        members = self._data.members
        process = members[child].process
        its = self._members_of.get((file, process.ppid), ())
        parent = max(its, key=lambda index: members[index].process.start_ticks, default=None)
        key = (members[child].file, process.ppid)
        if parent is not None and key not in self._foster.setdefault(parent, []):
            self._foster[parent].append(key)
        self._adopted.add((members[child].file, process.pid))

    def every_own(self) -> tuple[list[np.ndarray], np.ndarray]:
        """own() of all members, an array of each figure, and a mask of those of which it is known.
        """
        data = self._data
        made = [of_processes(data, f"kernel_{what}") - of_processes(data, f"own_{what}")
            for what in ("read", "written")]
        made += list((of_processes(data, "kernel_storage_ever").reshape(-1, 2)
            - of_processes(data, "kernel_storage_before").reshape(-1, 2)).T)
        is_known = of_processes(data, "io_known") != 0
        made = [np.maximum(column, 0) for column in made]
        others = {index: self.own(index) for index in self._with_others()}
        is_known[list(others)] = [one is not None for one in others.values()]
        known = {index: one for index, one in others.items() if one is not None}
        if known:
            made = [with_values(column, list(known), theirs)
                for column, theirs in zip(made, zip(*known.values()))]
        return made, is_known

    def _with_others(self) -> Iterator[int]:
        """Members that have figures of others, or whose own follow from those of others."""
        by_job = () if self._by_job is None else self._by_job[:1]
        yield from sorted({*self._parents, *self._spawned, *by_job})

    @cached_property
    def _parents(self) -> set[int]:
        """Members that have children, or may."""
        file = np.array([one.file for one in self._data.members], np.int64) << 32
        pid, ppid = (file | of_processes(self._data, name) for name in ("pid", "ppid"))
        return {*np.flatnonzero(np.isin(pid, ppid)).tolist(), *self._foster}

    @cached_property
    def _members_of(self) -> dict[tuple[int, int], list[int]]:
        """By file and pid."""
        found: dict[tuple[int, int], list[int]] = {}
        for index, member in enumerate(self._data.members):
            found.setdefault((member.file, member.process.pid), []).append(index)
        return found

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
        if index not in self.replaced:
            for child in self._children(index):
                if by_job is not None or self._is_within(child, index):
                    own = [mine - its for mine, its in zip(own, self._whole_of(child))]
        for its_figures in self._spawned.get(index, ()):
            own = [mine - its for mine, its in zip(own, its_figures)]
        return [max(0, part) for part in own]

    def without_figures(self, index: int) -> list[int]:
        """Children that were killed, and of which nobody could ask the kernel at their end."""
        return [
            child for child in self._children(index)
            if (one := self._data.members[child].process).whole and not one.end_ticks
            and one.end_kind != EXEC and child not in self.replaced
            and one.start_ticks >= self._data.members[index].process.start_ticks
        ]  # fmt: skip

    def bytes_of(self, one: Untraced) -> int | None:
        """Of a program without records whose figures are known: less what was there before it
        started, and what traced children of it brought in."""
        if one.figures is None or one.starter is None:
            return None
        member = self._data.members[one.starter]
        parts = list(one.figures[:2])
        others = [self._left_of(one.starter)] if one.is_replaced else []
        others += [
            self._whole_of(child) for child in self._data.children.get((member.file, one.pid), ())
            if self._data.members[child].process.start_ticks >= one.start_ticks
        ]  # fmt: skip
        for its in others:
            parts = [mine - other for mine, other in zip(parts, its)]
        return sum(above_noise(*parts))

    def reaper(self, one: Untraced) -> int | None:
        """The member whose figures have those of a program without records; JOB: whoever started
        the step; None: nobody known."""
        if one.starter is None:
            job = self._data.step.job
            return JOB if job is not None and one.pid == job.pid else None
        if not one.is_replaced:
            return one.starter if self._data.members[one.starter].process.io_known else None
        member = self._data.members[one.starter]
        parents = [
            index for index in self._members_of.get((member.file, member.process.ppid), ())
            if self._data.members[index].process.start_ticks <= member.process.start_ticks
        ]  # fmt: skip
        if not parents:
            return JOB
        parent = max(parents, key=lambda index: self._data.members[index].process.start_ticks)
        return parent if self._data.members[parent].process.io_known else None

    def job_excess(self) -> int | None:
        """Bytes of the job that no traced process at its root accounts for; None: unknown."""
        job = self._data.step.job
        if job is None or job.kernel_bytes is None:
            return None
        roots = self._roots()
        return max(0, sum(job.kernel_bytes) - sum(sum(self._whole_of(root)[:2]) for root in roots))

    def _roots(self) -> list[int]:
        """The last process of each pid whose parent left no records."""
        members = self._data.members
        keys = {
            (m.file, m.process.pid): None
            for m in members if (m.file, m.process.ppid) not in self._members_of
            and (m.file, m.process.pid) not in self._adopted
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
            and root not in self.replaced
        ]  # fmt: skip
        if len(silent) != 1:
            return None
        others = [self._whole_of(root)[:2] for root in roots if root != silent[0]]
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

    def _find_wholes(self) -> None:
        """What the parent of a member finds: of one whose figures at its end are not known at least
        what its children brought in. A child is younger, whatever a damaged trace says."""
        members = self._data.members

        def order(index: int) -> tuple[int, int]:
            return members[index].process.start_ticks, index

        for index in sorted(self._parents | self._final.keys(), key=order, reverse=True):
            if index in self._final:
                self._wholes[index] = self._final[index]
            elif index in self.replaced or not members[index].process.end_ticks:
                younger = [one for one in self._children(index) if order(one) > order(index)]
                theirs = [self._whole_of(one) for one in younger]
                self._wholes[index] = [sum(parts) for parts in zip(self._left_of(index), *theirs)]

    def _whole_of(self, index: int) -> list[int]:
        """What the parent of a member finds."""
        return self._wholes.get(index) or self._left_of(index)

    def _left_of(self, index: int) -> list[int]:
        """Figures of a member at its end."""
        return [int(column[index]) for column in self._left]

    def _left_by(self, seen: tuple[np.ndarray, ...]) -> list[np.ndarray]:
        """Figures of each member at its end: those that weir saw of one that was killed before it
        could ask the kernel once more."""
        data, made = self._data, []
        own_written = of_processes(data, "own_written")
        for what, its in (("read", whole(seen[2])), ("written", whole(seen[3]) + own_written)):
            ever, before = (of_processes(data, f"kernel_{what}_{when}")
                for when in ("ever", "before"))
            has_ended = of_processes(data, "end_ticks") != 0
            made.append(np.where(has_ended, ever, np.maximum(ever, before + its)))
        return [*made, *of_processes(data, "kernel_storage_ever").reshape(-1, 2).T]
