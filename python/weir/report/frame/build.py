# SPDX-License-Identifier: Apache-2.0
"""A report: one run, a choice of steps and ranks, and the columns that every figure is computed
from.

A subject (weir.report.SUBJECT) adds its own figures with `figure`; this module knows none of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, TypeVar

import numpy as np

from weir.analysis.active import Active, active_time
from weir.analysis.ahead import Begun, begin
from weir.analysis.columns import Columns, distinct
from weir.analysis.exclusion import Exclusion, exclusion_of
from weir.analysis.names import NameTable, is_mpi_segment
from weir.analysis.ranks import in_order, spans
from weir.analysis.remote import RemoteReader
from weir.analysis.step import Member, StepData, read_step
from weir.analysis.totals import Totals, totals, totals_by_rank
from weir.trace import Problem, RunNotFound, find_run
from weir.trace.process import LEVELS


@dataclass(frozen=True)
class Choice:
    """What a report is about. rank None: all ranks and other processes; everything: also launchers,
    pipes and devices. label: of one rank where the step may have several of that number, as tables
    print it; numbers: what identifies it (weir.analysis.ranks)."""

    rank: int | None = None
    everything: bool = False
    label: str | None = None
    numbers: frozenset[int] = frozenset()

    def takes(self, member: Member) -> bool:
        if member.is_launcher and not self.everything:
            return False
        if self.label is not None:
            return member.number in self.numbers
        return self.rank is None or member.rank == self.rank

    def chosen(self, ranks: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Mask of ranks by their number in their program, and by what identifies them."""
        if self.label is not None:
            return np.isin(numbers, list(self.numbers))
        return np.ones(len(ranks), bool) if self.rank is None else ranks == self.rank

    @property
    def who(self) -> str:
        """rank 3, rank model:3, post."""
        text = self.label or str(self.rank)
        return f"rank {text}" if text[text.rfind(":") + 1 :].isdecimal() else text

    @property
    def subject(self) -> str:
        """The same at the beginning of a sentence."""
        return self.who.replace("rank ", "Rank ", 1) if self.who.startswith("rank ") else self.who

    def rows(self, data: StepData, columns: Columns | None = None) -> np.ndarray:
        """Mask over the columns of a step: I/O of the chosen members on files. columns: the same
        I/O in other rows."""
        columns = data.columns if columns is None else columns
        mask = data.member_mask(self.takes)[columns.member] & columns.by_code("RWOCM")
        return mask if self.everything else mask & columns.is_file


Part = TypeVar("Part", "StepReport", "Report")
Found = TypeVar("Found")


def figure(compute: Callable[[Part], Found]) -> Callable[[Part], Found]:
    """A function of a step or a report whose answer is computed once for each and kept with it."""

    @wraps(compute)
    def once(of: Part) -> Found:
        if compute not in of.figures:
            of.figures[compute] = compute(of)
        elif isinstance(found := of.figures[compute], Begun):
            of.figures[compute] = found.answer()
        return of.figures[compute]

    return once


def begin_figures(*asked: tuple[Callable[[Part], Any], Part, Callable[[], Any]]) -> None:
    """Figures that a thread makes while others are asked for: each with what it is of, and what
    makes it (weir.analysis.ahead)."""
    for (function, of, _), begun in zip(asked, begin(*(work for *_, work in asked))):
        keep_instead(function, of, begun)


def keep_instead(function: Callable[[Part], Found], of: Part, value: Found) -> None:
    """Let a figure be as much of it as is still needed, from now on."""
    of.figures[function.__wrapped__] = value  # type: ignore[attr-defined]


class _Summed:
    """Totals over `sums`, of a step or of all. Level summary tells no files apart, so their number
    is not known there."""

    columns: Columns
    sums: Columns
    names: NameTable
    keeps_names: bool
    figures: dict[Callable, Any]

    @cached_property
    def rank0(self) -> Totals:
        """Of rank 0 of each parallel program."""
        return self.with_known_files(totals(self.of_rank(0)))

    @cached_property
    def all(self) -> Totals:
        return self.with_known_files(totals(self.sums))

    def of_rank(self, rank: int | None) -> Columns:
        """The sums by file of this rank of each program, or of all. rank: 0, or the one that the
        report is about."""
        if rank is None:
            return self.sums
        return self.sums.where(np.isin(self.sums.rank, self.names.ranks.numbers_of(rank)))

    def with_known_files(self, one: Totals) -> Totals:
        return one if self.keeps_names else replace(one, files=None)


@dataclass(frozen=True)
class StepReport(_Summed):
    """One step as it was chosen; every figure is computed once."""

    data: StepData
    choice: Choice
    names: NameTable = field(repr=False)
    phase_rules: tuple[Any, ...] = ()  # PhaseRule of weir.report.waits.phase_rules
    figures: dict[Callable, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.data.step.name

    @cached_property
    def members(self) -> np.ndarray:
        return self.data.member_mask(self.choice.takes)

    @cached_property
    def with_launchers(self) -> np.ndarray:
        """Mask of the chosen members, launchers among them."""
        return self.data.member_mask(replace(self.choice, everything=True).takes)

    def chosen_of(self, file: int) -> np.ndarray | None:
        """The same of a trace file's processes; None: of all ranks."""
        if self.choice.rank is None:
            return None
        first = self.data.first_member(file)
        return self.with_launchers[first : first + len(self.data.files[file].processes)]

    @cached_property
    def columns(self) -> Columns:
        """A row for each process, file and operation: see StepData.columns."""
        return self.data.columns.where(self.choice.rows(self.data))

    @cached_property
    def sums(self) -> Columns:
        """By file, ranks added up (weir.analysis.sums)."""
        return self.data.sums.by_file.where(self.choice.rows(self.data, self.data.sums.by_file))

    @cached_property
    def of_members(self) -> Columns:
        """By process, files added up."""
        return self.data.sums.by_member.where(
            self.choice.rows(self.data, self.data.sums.by_member))

    @property
    def rows(self) -> int:
        """Of `columns`, without making them."""
        chosen = [counts for at, counts in self.data.sums.counts.items() if self.members[at]]
        return sum(sum(one) if self.choice.everything else one[1] for one in chosen)

    @cached_property
    def layered(self) -> Columns:
        """What was seen and noted below the program's calls, of the chosen members, on files that
        the tables have."""
        table = self.data.layered
        if not len(table):
            return table
        kept = self.members[table.member]
        if not self.choice.everything:
            kept = kept & table.is_file & ~self.data.is_excluded(table)
        return table.where(kept)

    @cached_property
    def seen(self) -> Columns:
        """All that the chosen members did, calls that are no I/O of their own included: rows as in
        `columns`."""
        return self.data.columns.where(self.members[self.data.columns.member])

    def seen_where(self, wanted: Callable[[Columns], np.ndarray]) -> Columns:
        """Of `seen`, what a mask chooses, as in StepData.where()."""
        return self.data.where(lambda some: wanted(some) & self.members[some.member])

    @property
    def keeps_names(self) -> bool:
        return self.level != "summary"

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """Numbers of the ranks of the chosen members, then of what has none
        (weir.analysis.ranks)."""
        chosen = zip(self.data.members, self.members)
        return tuple(in_order({one.number for one, is_chosen in chosen if is_chosen}))

    def who(self, rank: int | None) -> str:
        """Of which processes a table is: this rank of each program, or all."""
        if rank is not None:
            return _rank_of_each(self.choice, rank, len(self.data.worlds))
        others = any(one < 0 for one in self.ranks)
        if not self.data.worlds:
            return "all processes"
        return f"all {self.rank_count} ranks{' and other processes' * others}"

    @property
    def rank_count(self) -> int:
        """Ranks of parallel programs; 1 when nothing was parallel."""
        found = sum(rank >= 0 for rank in self.ranks)
        return found or int(not self.data.worlds and bool(self.ranks))

    def has_rank(self, rank: int) -> bool:
        """Of any of its programs."""
        return any(self.names.ranks[one].rank == rank for one in self.ranks)

    @cached_property
    def by_rank(self) -> dict[int, Totals]:
        found = totals_by_rank(self.of_members, self.ranks, self.data.sums.files_of)
        if self.keeps_names:
            return found
        return {rank: self.with_known_files(one) for rank, one in found.items()}

    @property
    def active_ns(self) -> int | None:
        """None when the step was not recorded at level trace."""
        return activity_of(self).ns if self.level == "trace" else None

    @cached_property
    def level(self) -> str:
        levels = [file.header.level for file in self.data.files]
        least = min(levels, default=0)
        if not levels and self.data.step.job is not None:
            return self.data.step.job.level or "off"
        return LEVELS[least] if least < len(LEVELS) else "unknown"

    @cached_property
    def started_ns(self) -> int:
        job = self.data.step.job
        if job is not None and job.started_realtime_ns is not None:
            return job.started_realtime_ns
        return min((file.header.created_realtime_ns for file in self.data.files), default=0)

    @cached_property
    def wall_ns(self) -> int:
        """From the start of the job's command to its end, or to the last sign of life of a rank
        that outlived it; where one of both is unknown, to the last sign of life in the trace, from
        the start of the command or of the first process."""
        job = self.data.step.job
        if (
            job is not None
            and job.started_realtime_ns is not None
            and job.ended_realtime_ns is not None
        ):
            begin, end = job.started_realtime_ns, job.ended_realtime_ns
            signs = self._signs_of_ranks
            return max(0, max(end, *signs) - min(begin, *signs)) if signs else max(0, end - begin)
        timestamps = self._signs_of(np.ones(len(self.data.members), bool))
        if len(self.sums):
            timestamps += [int(self.sums.first_ns.min()), int(self.sums.last_ns.max())]
        if (
            timestamps
            and job is not None
            and job.command is not None
            and job.started_realtime_ns is not None
        ):
            timestamps.append(job.started_realtime_ns)
        return max(timestamps) - min(timestamps) if timestamps else 0

    @property
    def outlived_ns(self) -> int:
        """How long ranks went on when the job's command had ended (a launcher that was killed)."""
        job = self.data.step.job
        ended = job.ended_realtime_ns if job is not None else None
        return max(0, max(self._signs_of_ranks, default=0) - ended) if ended is not None else 0

    def _signs_of(self, chosen: np.ndarray) -> list[int]:
        """Timestamps of the first and the last sign of life of some members on each node."""
        ticks: list[list[int]] = [[] for _ in self.data.files]
        for member, is_chosen in zip(self.data.members, chosen.tolist()):
            if is_chosen and member.process.whole:
                one = member.process
                ticks[member.file] += filter(None, (one.start_ticks, one.last_ticks, one.end_ticks))
        return [line.timestamp(at) for line, its in zip(self.data.lines, ticks) if its
            for at in (min(its), max(its))]

    @cached_property
    def _signs_of_ranks(self) -> list[int]:
        """The same of all ranks of parallel programs, and the first and last of their records."""
        is_rank = self.data.member_mask(lambda one: one.process.ranks > 1 and not one.is_launcher)
        signs = self._signs_of(is_rank)
        seen = self.data.sums.by_member
        of_ranks = is_rank[seen.member]
        if of_ranks.any():
            signs.append(int(seen.first_ns[of_ranks].min()))
            signs.append(int(seen.last_ns[of_ranks].max()))
        return signs

    @cached_property
    def lost_events(self) -> int:
        """Calls without a record where records were asked for, and calls of which not even a
        counter was kept."""
        return sum(self.data.lost_events_of(one) for one in self.data.members
            if one.process.lost_events or one.process.counted_calls)

    @cached_property
    def excluded(self) -> Columns:
        """Calls of the chosen members on files that are left out (weir.analysis.exclusion)."""
        every = self.data.sums.by_file
        columns = every.where(self.data.is_excluded(every))
        chosen = self.data.member_mask(replace(self.choice, everything=False).takes)[columns.member]
        return columns.where(chosen & columns.by_code("RWOCM"))

    def left_out(self) -> tuple[Totals, Totals, Totals]:
        """What the tables leave out: pipes, devices and the like; all calls of launchers; segments
        of MPI libraries. With `excluded` and `columns` these are all calls of the chosen ranks."""
        columns = self.data.sums.by_file
        columns = columns.where(columns.by_code("RWOCM") & self.with_launchers[columns.member])
        launcher = self.data.member_mask(lambda m: m.is_launcher)[columns.member]
        is_storage = columns.is_file | self.data.is_excluded(columns)
        not_files = columns.where(~is_storage & ~launcher)
        used = distinct(not_files.name)
        is_segment = np.isin(not_files.name,
            used[[is_mpi_segment(self.names[name]) for name in used.tolist()]])
        left_out = (
            not_files.where(~is_segment), columns.where(launcher), not_files.where(is_segment)
        )
        found = [totals(one) for one in left_out]
        return found[0], found[1], replace(found[2], files=len(distinct(left_out[2].name)))


@figure
def activity_of(step: StepReport) -> Active:
    data, first = step.data, step.data.first_member
    masks = [step.members[first(at) : first(at + 1)] for at in range(len(data.files))]
    return active_time(data.files, data.lines, masks, all_names=step.choice.everything)


@dataclass(frozen=True)
class Report(_Summed):
    """Everything that `weir report` shows of a run."""

    path: str
    choice: Choice
    names: NameTable = field(repr=False)
    steps: tuple[StepReport, ...]
    exclusion: Exclusion | None = None
    figures: dict[Callable, Any] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def columns(self) -> Columns:
        return Columns.joined([step.columns for step in self.steps])

    @cached_property
    def sums(self) -> Columns:
        return Columns.joined([step.sums for step in self.steps])

    @property
    def rows(self) -> int:
        """Of `columns`, without making them."""
        return sum(step.rows for step in self.steps)

    @property
    def keeps_names(self) -> bool:
        return all(step.keeps_names for step in self.steps)

    @cached_property
    def active_ns(self) -> int | None:
        parts = [step.active_ns for step in self.steps]
        return None if None in parts else sum(parts)

    @property
    def wall_ns(self) -> int:
        return sum(step.wall_ns for step in self.steps)

    @property
    def lost_events(self) -> int:
        return sum(step.lost_events for step in self.steps)

    @property
    def problems(self) -> list[Problem]:
        return [problem for step in self.steps for problem in step.data.problems]

    @cached_property
    def shown_ranks(self) -> list[int | None]:
        """The rank that tables speak of, then None for all of them when there are more."""
        if self.choice.rank is not None:
            return [self.choice.rank]
        every = {rank for step in self.steps for rank in step.ranks}
        if every == {0}:
            return [0]
        has_rank_0 = any(step.data.worlds and step.has_rank(0) for step in self.steps)
        return [0, None] if has_rank_0 or 0 in every else [None]

    def who(self, rank: int | None) -> str:
        """Of which processes a table is: this rank of each program, or all."""
        most = max((len(step.data.worlds) for step in self.steps), default=0)
        if rank is not None:
            return _rank_of_each(self.choice, rank, most)
        return "all ranks" if most else "all processes"

    @property
    def cwd(self) -> str | None:
        """The working directory that all steps share, else None."""
        found = {step.data.cwd for step in self.steps}
        return found.pop() if len(found) == 1 else None

    @property
    def data(self) -> list[StepData]:
        return [step.data for step in self.steps]

    @property
    def masks(self) -> list[np.ndarray]:
        return [step.members for step in self.steps]


def _rank_of_each(choice: Choice, rank: int, programs: int) -> str:
    if choice.label is not None:
        return choice.who
    return f"rank {rank}{' of each program' * (programs > 1)}"


def build(
    run_path: str | os.PathLike[str], *, step: str | None = None, rank: int | str | None = None,
    all: bool = False,
    phase_rules: tuple[Any, ...] = (), reader: RemoteReader | None = None,
    exclusion: Exclusion | None = None,
) -> Report:
    """Read a run (or one step of it) and make its report; damage is in the report's problems.

    rank: only the processes of this rank; a label of it as tables print it (model:3, post), where
    several programs of a step have ranks. all: launchers, pipes and devices too. phase_rules: marks
    of phases besides the program's (weir.report.waits.phase_rules). reader: who reads the trace
    files instead of this process (weir.cluster). exclusion: files that are left out, unless all is
    True; None: those that the environment chooses. Raises weir.trace.RunNotFound, for a rank that
    is not there too.
    """
    run = find_run(run_path, step)
    names, number, label = NameTable(), *_wanted(rank)
    exclusion = None if all else exclusion or exclusion_of()
    of_step = [
        exclusion and exclusion.of_step(None if one.job is None else one.job.cwd)
        for one in run.steps
    ]
    if reader is not None:
        for one, left_out in zip(run.steps, of_step):
            reader.expect(one.files, left_out)
    read = [read_step(one, names, reader, left_out, number) for one, left_out in zip(run.steps,
        of_step)]
    choice = _chosen(Choice(number, all, label), read, names)
    steps = [StepReport(one, choice, names, phase_rules) for one in read]
    steps.sort(key=lambda one: (one.started_ns, one.name))
    if number is not None and not any(one.has_rank(number) for one in steps):
        everyone = sorted({member.rank for one in steps for member in one.data.members})
        raise RunNotFound(
            f"{run.path}: no rank {rank}; it has {_ranks(everyone)}")
    return Report(str(run.path), choice, names, tuple(steps), exclusion)


def _wanted(rank: int | str | None) -> tuple[int | None, str | None]:
    """The number of a rank in its program, where it is known before the run is read, and its label.
    """
    if rank is None or isinstance(rank, int):
        return rank, None
    last = rank[rank.rfind(":") + 1 :]
    if last.removeprefix("-").isdecimal():
        return int(last), rank if ":" in rank else None
    return None, rank


def _chosen(choice: Choice, read: list[StepData], names: NameTable) -> Choice:
    """With the numbers of its label. The rank of the only program of a step is there by the name of
    that, too. Raises RunNotFound when no rank has the label."""
    if choice.label is None:
        return choice
    members = [one for step in read for one in step.members]
    found = [one for one in members if not one.is_launcher and choice.label in (
        names.ranks[one.number].label, f"{one.name}:{one.rank}")]  # fmt: skip
    if not found:
        known = names.ranks.text({one.number for one in members if not one.is_launcher})
        raise RunNotFound(f"no rank or program {choice.label!r}; the run has {known or 'no ranks'}")
    return replace(choice, rank=found[0].rank, numbers=frozenset(one.number for one in found))


def _ranks(every: list[int]) -> str:
    """Rising ranks as words: ranks 0-383 and processes without a rank."""
    known = spans(tuple(rank for rank in every if rank >= 0)).replace(",", ", ")
    return " and ".join(filter(None, [known and f"ranks {known}",
        "processes without a rank" if -1 in every else ""])) or "no ranks"
