# SPDX-License-Identifier: Apache-2.0
"""One step, read: its trace files scanned, its clocks aligned, its processes sorted into ranks and
others, its columns joined."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from weir.analysis.alignment import Alignment, align
from weir.analysis.clock import Line, node_line
from weir.analysis.columns import Columns, distinct
from weir.analysis.exclusion import Exclusion
from weir.analysis.in_turn import in_turn
from weir.analysis.memory import return_memory
from weir.analysis.names import NO_NAME, NameTable
from weir.analysis.ranks import FIRST_NAMED, NO_RANK, RankNames
from weir.analysis.sums import Part, Summing, Sums, classes_of
from weir.analysis.worlds import FROM_MPI, World, Worlds, program_of, worlds_of
from weir.trace import DamagedFile, Problem, Process, Step, TraceFile
from weir.trace.file import LOST, FileReader, threads_for
from weir.trace.ops import EVENTS
from weir.trace.process import LEVELS

KEPT_ROWS = 1 << 18  # of the reader: of a step with more they are read again where needed
_LAUNCHERS = re.compile(
    r"(mpirun|mpiexec|orterun|prterun|orted|prted|prte|hydra_pmi_proxy|hydra_bstrap_proxy|srun)([._-].*)?"
)


@dataclass(frozen=True, slots=True)
class Member:
    """A process of the step. rank: in its own program, 0 for all when nothing in the step is
    parallel, -1 for what is no rank. number: what identifies the rank in the report
    (weir.analysis.ranks). world: index of its parallel program, -1 for none. name: of the program,
    or of the script that it runs."""

    file: int
    process: Process
    rank: int
    is_launcher: bool
    number: int = -1
    world: int = -1
    name: str = ""


@dataclass(frozen=True)
class StepData:
    """Everything that tables of one step are computed from."""

    step: Step
    files: tuple[TraceFile, ...]
    lines: tuple[Line, ...]
    alignments: tuple[Alignment, ...]
    members: tuple[Member, ...]
    worlds: tuple[World, ...]
    sums: Sums
    name_numbers: tuple[np.ndarray, ...]
    problems: tuple[Problem, ...]
    names: NameTable = field(repr=False)
    excluded: np.ndarray = field(default_factory=lambda: np.empty(0, np.int32))  # numbers of names

    @cached_property
    def nodes_of_ranks(self) -> int:
        """Nodes on which ranks called MPI: a launcher may have run on another one."""
        return len({one.file for one in self.members if one.process.rank_source == FROM_MPI}) \
            or len(self.files)

    @property
    def layered(self) -> Columns:
        """What event layers saw and what was noted of layers: in no total (docs/formats/trace.md,
        section 3.5)."""
        return self.sums.layered

    @cached_property
    def columns(self) -> Columns:
        """A row for each process, file and operation: of many ranks that have many files in common
        much more than there is of either, so tables use `sums` and `by_node()` where these do."""
        return Columns.joined(list(self.by_node()))

    def where(self, wanted: Callable[[Columns], np.ndarray]) -> Columns:
        """The rows of `columns` that a mask chooses, without the others in memory. wanted: the mask
        of any columns, by what the sums by file still tell apart: nothing is read where it chooses
        none of these."""
        if not wanted(self.sums.by_file).any():
            return Columns.empty()
        return Columns.joined([part.where(wanted(part)) for part in self.by_node()])

    def by_node(self) -> Iterator[Columns]:
        """The same, of one trace file after the other. cost: of a step with more than KEPT_ROWS
        rows, a pass over its records."""
        if "columns" in vars(self):
            ends = np.cumsum([len(file.processes) for file in self.files])
            limits = [0, *np.searchsorted(self.columns.member, ends).tolist()]
            yield from (self.columns.where(slice(*one)) for one in zip(limits, limits[1:]))
            return
        pieces = [(file, 0, len(file.processes)) for file in self.files]
        for index, rows in enumerate(in_turn(TraceFile.rows_of, pieces)):
            made = _columns(self.files[index], rows, self.lines[index], self.members,
                self.first_member(index), self.names, self.name_numbers[index])
            yield made.where(made.layer < EVENTS)

    def is_excluded(self, columns: Columns) -> np.ndarray:
        """Mask of the rows on files that are left out (weir.analysis.exclusion)."""
        return np.isin(columns.name, self.excluded)

    def as_storage(self, columns: Columns) -> Columns:
        """Rows with files that are left out as the files that they are."""
        if not len(self.excluded):
            return columns
        return replace(columns, is_file=columns.is_file | self.is_excluded(columns))

    def members_with(self, op: int) -> frozenset[int]:
        """Members that made calls of an operation."""
        if op not in self._members_with:
            seen = self.sums.by_member
            self._members_with[op] = frozenset(distinct(seen.member[seen.op == op]).tolist())
        return self._members_with[op]

    @cached_property
    def _members_with(self) -> dict[int, frozenset[int]]:
        return {}

    def of_members(self, members: tuple[int, ...], classes: str) -> Columns:
        """Rows of `columns` with a name, of some members and classes of operations. cost: a pass
        over the records of these members, unless all rows are in memory."""
        parts = []
        for one in sorted(members):
            member = self.members[one]
            process, file = member.process.index, self.files[member.file]
            made = _columns(file, file.rows_of(process, process + 1), self.lines[member.file],
                self.members, self.first_member(member.file), self.names,
                self.name_numbers[member.file])
            parts.append(made.where(made.by_code(classes) & (made.name != NO_NAME)
                & (made.layer < EVENTS)))
        return Columns.joined(parts)

    @property
    def has_no_rank(self) -> bool:
        """Whether a launcher is there that was to start something, and no rank."""
        launchers = [m.process.command[1:] for m in self.members if m.is_launcher]
        return not any(m.process.rank >= 0 for m in self.members) and any(not word.startswith("-")
            for words in launchers for word in words)

    @property
    def cwd(self) -> str | None:
        """Working directory of the step: of its job, else of its first process."""
        if self.step.job is not None and self.step.job.cwd:
            return self.step.job.cwd
        return next((m.process.cwd for m in self.members if m.process.cwd), None)

    @cached_property
    def children(self) -> dict[tuple[int, int], list[int]]:
        """By file and pid of the parent: its children, each as the member of the program that it
        ran last."""
        last: dict[tuple[int, int], int] = {}
        for index, member in enumerate(self.members):
            at = last.setdefault((member.file, member.process.pid), index)
            if member.process.start_ticks >= self.members[at].process.start_ticks:
                last[member.file, member.process.pid] = index
        found: dict[tuple[int, int], list[int]] = {}
        for (file, _), index in last.items():
            found.setdefault((file, self.members[index].process.ppid), []).append(index)
        return found

    @cached_property
    def signals(self) -> dict[int, int]:
        """By member: the signal that killed it, where its parent noted it, or `weir trace` did."""
        found = {i: one.process.signal for i, one in enumerate(self.members) if one.process.signal}
        job, whole = self.step.job, [i for i, one in enumerate(self.members) if one.process.whole]
        if job is not None and (job.exit_status or 0) < 0 and whole:
            root = self.members[min(whole, key=lambda i: self.members[i].process.start_realtime_ns)]
            its_programs = [
                i for i in whole
                if self.members[i].file == root.file and self.members[i].process.pid
                == root.process.pid
            ]  # fmt: skip
            last = max(its_programs, key=lambda i: self.members[i].process.start_ticks)
            found.setdefault(last, -(job.exit_status or 0))
        return found

    def first_member(self, file: int) -> int:
        """Index of the first process of a file among the members."""
        return self._first_members[file]

    @cached_property
    def _first_members(self) -> list[int]:
        return [0, *np.cumsum([len(one.processes) for one in self.files]).tolist()]

    def lost_events_of(self, member: Member) -> int:
        """Calls without a record where records were asked for, and calls of which not even a
        counter was kept."""
        process = member.process
        return process.lost_events + (process.counted_calls if self.files[member.file].header.level
            == LEVELS.index("trace") else 0)

    def member_mask(self, wanted: Callable[[Member], bool]) -> np.ndarray:
        """A boolean per member."""
        return np.fromiter(map(wanted, self.members), bool, len(self.members))


def read_step(
    step: Step, names: NameTable, reader: FileReader | None = None,
    exclusion: Exclusion | None = None, rank: int | None = None,
) -> StepData:
    """Read all trace files of a step, here or where `reader` does. Damage becomes problems; what is
    whole is there. exclusion: files that are left out; None: none of them. rank: one that tables
    choose, beside rank 0."""
    problems: list[Problem] = []
    files: list[TraceFile] = []
    if step.job_problem:
        problems.append(Problem(str(step.path / "job.json"), None, step.job_problem))
    for found in _opened(step.files, exclusion) if reader is None else reader.open(step.files,
            exclusion):
        (files if isinstance(found, TraceFile) else problems).append(found)
    read = [node_line(file) for file in files]
    worlds = worlds_of(files)
    lines, alignments = align(tuple(files), tuple(line for line, _ in read), worlds)
    members = members_of(files, worlds, names.ranks)
    numbers = tuple(names.all_recorded(file.texts) for file in files)
    sums = _sums(files, lines, members, names, numbers, rank)
    for file, (_, problem) in zip(files, read):
        problems += [*file.problems, *([] if problem is None else [problem])]
    return_memory()
    return StepData(step, tuple(files), lines, alignments, members, worlds.found, sums, numbers,
        tuple(problems), names, _excluded(files, numbers, exclusion))


def _sums(
    files: list[TraceFile], lines: tuple[Line, ...], members: tuple[Member, ...], names: NameTable,
    numbers: tuple[np.ndarray, ...], rank: int | None,
) -> Sums:  # fmt: skip
    """Scans the files. Their rows and histograms stay where they are few."""
    summing, rows, kept = Summing(members, classes_of(members, rank)), 0, []
    known = len(names.names)
    firsts = [0, *np.cumsum([len(file.processes) for file in files]).tolist()]

    def part_of(index: int) -> Part:
        file = files[index]
        columns = _columns(file, file.array("rows"), lines[index], members, firsts[index], names,
            numbers[index])
        return summing.part(columns, file.array("histograms"), firsts[index])

    def scanned(index: int) -> Part | None:
        """None: names are lost, which get their numbers in the order of the files."""
        file = files[index]
        file.scan(max(1, threads_for(file.header.file_bytes) // len(files)))
        return None if lost_in(file, file.array("rows")).any() else part_of(index)

    for index, part in enumerate(in_turn(scanned, ((index,) for index in range(len(files))))):
        summing.add(part_of(index) if part is None else part)
        file = files[index]
        rows += len(file.array("rows"))
        kept.append(file)
        if rows > KEPT_ROWS:
            while kept:
                kept.pop().forget()
        file.leave()
    return summing.sums(has_lost_names=len(names.names) > known)


def lost_in(file: TraceFile, table: np.ndarray) -> np.ndarray:
    """Mask of the rows with names that the file does not have, for any table with the columns
    process and file."""
    return (file.texts_of(table["process"], table["file"]) == LOST) & (table["file"] != 0)


def _excluded(
    files: list[TraceFile], numbers: tuple[np.ndarray, ...], exclusion: Exclusion | None
) -> np.ndarray:
    """Numbers of the names that are left out, rising."""
    if exclusion is None:
        return np.empty(0, np.int32)
    masks = [exclusion.mask(file.texts) for file in files]
    found = [numbered[mask] for numbered, mask in zip(numbers, masks)]
    return np.unique(np.concatenate([np.empty(0, np.int32), *found]))


def _opened(paths: tuple[Path, ...], exclusion: Exclusion | None) -> list[TraceFile | Problem]:
    # the library works without the interpreter's lock
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return list(pool.map(partial(_open, is_alone=len(paths) == 1, exclusion=exclusion), paths))


def _open(path: Path, is_alone: bool, exclusion: Exclusion | None) -> TraceFile | Problem:
    """With what clocks are aligned by, where there are others."""
    try:
        file = TraceFile(path)
        if exclusion is not None:
            file.exclude(exclusion.mask(file.texts))
        if is_alone:
            return file
        file.find_syncs()
        file.processes  # noqa: B018: decoded while other files are read
        file.leave()
        return file
    except DamagedFile as error:
        return Problem(error.path, error.offset, error.reason)


def is_launcher(process: Process) -> bool:
    """Whether the process starts ranks rather than being one."""
    return process.rank < 0 and _LAUNCHERS.fullmatch(process.program) is not None


def members_of(
    files: list[TraceFile], worlds: Worlds, ranks: RankNames, is_growing: bool = False
) -> tuple[Member, ...]:
    """The processes of a step's trace files, one file after the other. is_growing: others may come:
    what has a number then keeps it."""
    everyone = [(index, process, world) for index, file in enumerate(files)
        for process, world in zip(file.processes, worlds.of[index])]
    is_parallel, names = bool(worlds.found), worlds.names
    last_plain = 0 if is_growing or len(names) == 1 else -1  # the last world without labels
    pids = {(at, one.pid) for at, one, _ in everyone if not is_launcher(one)}
    is_alone = not is_parallel and len(pids) == 1

    def member(file: int, process: Process, world: int) -> Member:
        launches, name = is_launcher(process), program_of(process)
        rank = process.rank if is_parallel or launches else 0
        if launches:
            number = NO_RANK
        elif world >= 0 and (world > last_plain or rank >= FIRST_NAMED):
            number = ranks.of_program(names[world], rank, worlds.found[world].ranks)
        elif world >= 0 or is_alone or (is_growing and not is_parallel):
            number = rank
        else:
            number = ranks.of_process(name, is_parallel)
        return Member(file, process, rank, launches, number, world, name)

    order = sorted(range(len(everyone)), key=lambda at: (everyone[at][2], everyone[at][1].rank))
    made = {at: member(*everyone[at]) for at in order}  # numbers in the order of programs and ranks
    return tuple(made[at] for at in range(len(everyone)))


def _columns(
    file: TraceFile, table: np.ndarray, line: Line, members: tuple[Member, ...], first: int,
    names: NameTable, numbers: np.ndarray
) -> Columns:
    """Of rows of the reader, copied. first: the file's first member."""
    member = table["process"].astype(np.int32) + np.int32(first)
    numbers_of_ranks = np.array(
        [one.number for one in members[first : first + len(file.processes)]], np.int32)

    def whole(key: str) -> np.ndarray:
        return np.minimum(table[key], np.uint64(2**62)).astype(np.int64)

    return Columns(
        member=member,
        rank=numbers_of_ranks[table["process"]],
        name=name_numbers(file, table, names, numbers),
        op=table["op"].copy(),
        layer=table["layer"].copy(),
        flags=table["flags"].copy(),
        is_file=table["is_file"] != 0,
        calls=whole("calls"),
        bytes=whole("bytes"),
        ns=line.lengths(table["ticks"]),
        errors=whole("errors"),
        first_ns=line.timestamps(table["first_ticks"]),
        last_ns=line.timestamps(table["last_ticks"]),
    )


def name_numbers(file: TraceFile, table: np.ndarray, names: NameTable,
        numbers: np.ndarray) -> np.ndarray:
    """The number of each row's name, for any table with the columns process and file; numbers:
    those of the file's texts.

    A lost name gets a number of its own, so that its bytes are not those of another.
    """
    at = file.texts_of(table["process"], table["file"])
    found = at != LOST
    out = np.full(len(table), NO_NAME, np.int32)
    out[found] = numbers[at[found]]
    for row in np.flatnonzero(~found & (table["file"] != 0)).tolist():
        process = file.processes[int(table["process"][row])]
        out[row] = names.number(
            f"(lost name {int(table['file'][row])} of process {process.pid} on {file.node})")
    return out
