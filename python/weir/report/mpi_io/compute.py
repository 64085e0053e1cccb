# SPDX-License-Identifier: Apache-2.0
"""MPI-IO, file by file: who touches the file (aggregators), hints given and in force, and the
pattern of access.

Source of the records: docs/formats/trace.md, section 3.8. What MPI was asked for are the records of
layer mpi_io; what it made of it are the POSIX requests on the same file, of whichever rank made
them (as MPICH_MPIIO_STATS of Cray MPICH counts them).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from weir.analysis.columns import Columns, class_codes, merged, rows
from weir.analysis.names import NO_NAME, NameTable, fold
from weir.analysis.ranks import RankName
from weir.analysis.remote import pass_over_records
from weir.analysis.step import StepData
from weir.report.frame.build import Report, StepReport, figure
from weir.trace.ops import ERROR, MPI_IO, POSIX, op_named, ops

_PREFIX = "MPI_File_"
_GIVEN, _IN_FORCE, _LAYOUT = "hint given", "hint", "layout"
_UNKNOWN_OFFSET = np.uint64(2**48 - 1)
_STRIPE_HINT = "striping_unit"
_BETWEEN = " | "  # values of a key that openings differ in


@dataclass(frozen=True)
class Routine:
    """What a routine of MPI-IO is: its direction (R or W) and how ranks take part."""

    direction: str
    is_collective: bool
    is_shared: bool
    is_nonblocking: bool
    is_split: bool


def routine(name: str) -> Routine | None:
    """The kind of a data access by its name; None for other calls and for the ends of split ones,
    which their beginnings count."""
    word = name.removeprefix(_PREFIX)
    kind = word.removeprefix("i")
    direction = {"read": "R", "writ": "W"}.get(kind[:4])
    if not name.startswith(_PREFIX) or direction is None or word.endswith("_end"):
        return None
    parts = word.split("_")
    return Routine(
        direction,
        is_collective="all" in parts or "ordered" in parts,
        is_shared="shared" in parts or "ordered" in parts,
        is_nonblocking=word.startswith("i"),
        is_split=parts[-1] == "begin",
    )


@dataclass(frozen=True)
class Aggregator:
    """A rank that touches the file: its requests to the system."""

    rank: RankName
    node: str
    reads: int
    read_bytes: int
    writes: int
    written_bytes: int


@dataclass(frozen=True)
class Gaps:
    """Where a rank's next request does not begin where its last one ended. None in Access: the
    records are not there to tell.

    skipped_bytes: of those that begin behind it; back: that begin before it; stripe_sized: requests
    of exactly a stripe (0: none known).
    """

    gaps: int = 0
    skipped_bytes: int = 0
    back: int = 0
    stripe_sized: int = 0


@dataclass(frozen=True)
class Access:
    """One direction. Calls are those of all ranks; split ones count once. ns: time in calls, of all
    ranks; busiest_ns: of the rank with most.

    system_*: requests to the system on this file. system_ranks: ranks that made them."""

    independent: int = 0
    collective: int = 0
    shared: int = 0
    nonblocking: int = 0
    split: int = 0
    independent_ranks: int = 0
    bytes: int = 0
    ns: int = 0
    busiest_ns: int = 0
    system: int = 0
    system_bytes: int = 0
    system_ns: int = 0
    system_ranks: int = 0
    gaps: Gaps | None = None

    @property
    def calls(self) -> int:
        return self.independent + self.collective


@dataclass(frozen=True)
class MpiFile:
    """A file that a step opened through MPI-IO. ranks: ranks that opened it; opens: how often one
    of them did; failed_opens: how often none could, at most; stripes, stripe_bytes: None where
    unknown; stripe_source: where the stripe is from ("lustre", "hint", "block size")."""

    step: str
    file: str
    ranks: int
    opens: int
    views: int
    reads: Access
    writes: Access
    aggregators: tuple[Aggregator, ...]
    hints: dict[str, str] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)
    layout: dict[str, str] = field(default_factory=dict)
    stripes: int | None = None
    stripe_bytes: int | None = None
    stripe_source: str = ""
    failed_opens: int = 0

    @property
    def ignored(self) -> dict[str, str]:
        """Hints that were given and are not in force as they were."""
        found = {}
        for key, given in self.given.items():
            in_force = self.hints.get(key, "").split(_BETWEEN)
            if lost := [value for value in given.split(_BETWEEN) if value not in in_force]:
                found[key] = _BETWEEN.join(lost)
        return found


def mpi_files(step: str, data: StepData, members: np.ndarray, names: NameTable) -> list[MpiFile]:
    """The files of one step by name. members: a boolean for each member of the step, those that
    count."""
    def is_asked(some: Columns) -> np.ndarray:
        is_one = (some.layer == MPI_IO) & (some.name != NO_NAME) & members[some.member]
        return is_one & ~data.is_excluded(some)

    by_file = data.sums.by_file
    wanted = np.unique(by_file.name[is_asked(by_file) & (by_file.op == _op("open"))])

    def is_made(some: Columns) -> np.ndarray:
        is_one = (some.layer == POSIX) & some.by_code("RW") & members[some.member]
        return is_one & np.isin(some.name, wanted)

    columns = data.where(lambda some: is_asked(some) | is_made(some))
    asked, system = columns.where(is_asked(columns)), columns.where(is_made(columns))
    if not len(asked):
        return []
    layouts = _layouts(data)
    stripes = {int(name): _stripe(layouts.get(names[int(name)], {})) for name in wanted}
    touching = np.zeros(len(data.members), bool)
    touching[system.member] = True
    gaps = _gaps(data, touching,
        {name: stripe[1] for name, stripe in stripes.items()}) if _has_records(data) else None
    return [
        _file(step, int(name), asked.where(asked.name == name), system.where(system.name == name),
            data, names, layouts, stripes[int(name)], gaps)
        for name in sorted(wanted.tolist(), key=lambda name: names[name])
    ]


def _op(word: str) -> int:
    return op_named(_PREFIX + word).value


def _has_records(data: StepData) -> bool:
    return bool(data.files) and all(file.header.level == 3 for file in data.files)


def _layouts(data: StepData) -> dict[str, dict[str, dict[str, str]]]:
    """By file: by kind of note, values by key. Several values of a key, of several openings, are
    joined."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for file in data.files:
        for text in file.notes.values():
            if "\n" not in text:
                continue
            kind, *rest = text.split("\n")
            if kind not in (_GIVEN, _IN_FORCE, _LAYOUT) or len(rest) != 3:
                continue
            path, key, value = rest
            notes = found.setdefault(fold(path), {}).setdefault(kind, {})
            before = notes.get(key)
            notes[key] = value if before is None else before if value in before.split(
                _BETWEEN) else before + _BETWEEN + value
    return found


def alignment_of(data: StepData) -> dict[str, tuple[int | None, int | None]]:
    """Bytes of a block and of a stripe of each file of which MPI-IO reported them."""
    found = {}
    for path, notes in _layouts(data).items():
        _, stripe, source = _stripe(notes)
        block = _whole(notes.get(_LAYOUT, {}).get("block_bytes"))
        found[path] = block, None if source == "block size" else stripe
    return found


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() and int(text) > 0 else None


def _stripe(notes: dict[str, dict[str, str]]) -> tuple[int | None, int | None, str]:
    """Number of stripes, bytes of a stripe, and where they are from: the file system, else a hint
    in force, else the block size."""
    layout, hints = notes.get(_LAYOUT, {}), notes.get(_IN_FORCE, {})
    if stripe := _whole(layout.get("stripe_bytes")):
        return _whole(layout.get("stripes")), stripe, "lustre"
    if stripe := _whole(hints.get(_STRIPE_HINT)):
        return _whole(hints.get("striping_factor")), stripe, "hint"
    block = _whole(layout.get("block_bytes"))
    return None, block, "block size" if block else ""


def _file(
    step: str, name: int, asked: Columns, system: Columns, data: StepData, names: NameTable,
    layouts: dict[str, dict[str, dict[str, str]]],
    stripe: tuple[int | None, int | None, str], gaps: dict[tuple[int, str], Gaps] | None,
) -> MpiFile:  # fmt: skip
    tried, notes = asked.where(asked.op == _op("open")), layouts.get(names[name], {})
    opened = tried.where(tried.calls > tried.errors)

    def access(direction: str) -> Access:
        seen = None if gaps is None else gaps.get((name, direction), Gaps())
        return _access(direction, asked, system.where(system.by_code(direction)), seen)

    return MpiFile(
        step=step,
        file=names[name],
        ranks=len(np.unique(opened.rank)),
        opens=int((opened.calls - opened.errors).max(initial=0)),
        failed_opens=int(tried.errors.max(initial=0)),
        views=int(asked.calls[asked.op == _op("set_view")].sum()),
        reads=access("R"),
        writes=access("W"),
        aggregators=tuple(_aggregators(system, data, names)),
        hints=notes.get(_IN_FORCE, {}),
        given=notes.get(_GIVEN, {}),
        layout=notes.get(_LAYOUT, {}),
        stripes=stripe[0],
        stripe_bytes=stripe[1],
        stripe_source=stripe[2],
    )


def _access(direction: str, asked: Columns, system: Columns, gaps: Gaps | None) -> Access:
    sums = dict.fromkeys(("independent", "collective", "shared", "nonblocking", "split", "bytes"),
        0)
    by_rank: dict[int, int] = {}
    alone: set[int] = set()
    for row in rows(merged(asked, "rank", "op")):
        name = ops()[row.op].name
        kind = routine(name) or routine(name.removesuffix("_end") + "_begin")
        if kind is None or kind.direction != direction:
            continue
        by_rank[row.rank] = by_rank.get(row.rank, 0) + row.ns
        if name.endswith("_end"):
            continue
        sums["collective" if kind.is_collective else "independent"] += row.calls
        sums["bytes"] += row.bytes
        for word in ("shared", "nonblocking", "split"):
            sums[word] += row.calls if getattr(kind, f"is_{word}") else 0
        if not kind.is_collective:
            alone.add(row.rank)
    return Access(
        **sums,
        independent_ranks=len(alone),
        ns=sum(by_rank.values()),
        busiest_ns=max(by_rank.values(), default=0),
        system=int(system.calls.sum()),
        system_bytes=int(system.bytes.sum()),
        system_ns=int(system.ns.sum()),
        system_ranks=len(np.unique(system.rank)),
        gaps=gaps,
    )


def _aggregators(system: Columns, data: StepData, names: NameTable) -> Iterator[Aggregator]:
    nodes = {member: data.files[data.members[member].file].node
        for member in np.unique(system.member).tolist()}
    sums: dict[int, list[int]] = {}
    node_of: dict[int, str] = {}
    is_read = system.by_code("R").tolist()
    for reads, rank, member, calls, size in zip(is_read,
            *(getattr(system, key).tolist() for key in ("rank", "member", "calls", "bytes"))):
        node_of[rank] = nodes[member]
        cell = sums.setdefault(rank, [0, 0, 0, 0])
        cell[0 if reads else 2] += calls
        cell[1 if reads else 3] += size
    for rank in sorted(sums):
        yield Aggregator(names.ranks[rank], node_of[rank], *sums[rank])


@pass_over_records
def _gaps(data: StepData, members: np.ndarray,
        stripe_of: dict[int, int | None]) -> dict[tuple[int, str], Gaps]:
    """By file and direction, from the records: one pass over the chunks of the processes that touch
    these files."""
    parts: dict[tuple[int, str, int], list[tuple[np.ndarray, ...]]] = {}
    for index, file in enumerate(data.files):
        first, numbers = data.first_member(index), data.name_numbers[index]
        ids: dict[int, dict[int, int]] = {}
        for chunk in file.event_chunks():
            process = int(chunk["process"])
            if not members[first + process]:
                continue
            if process not in ids:
                table = file.names_of(process)
                ids[process] = {int(one["id"]): int(numbers[one["text"]]) for one in table
                    if int(numbers[one["text"]]) in stripe_of}
            for name, direction, *columns in _requests(file.records(chunk), ids[process]):
                parts.setdefault((name, direction, data.members[first + process].number),
                    []).append(tuple(columns))
    found: dict[tuple[int, str], Gaps] = {}
    for (name, direction, _), pieces in parts.items():
        start, offset, size = (np.concatenate(column) for column in zip(*pieces))
        order = np.argsort(start, kind="stable")
        seen = _gaps_of(offset[order].astype(np.int64), size[order].astype(np.int64),
            stripe_of[name])
        before = found.get((name, direction), Gaps())
        found[name, direction] = Gaps(
            before.gaps + seen.gaps, before.skipped_bytes + seen.skipped_bytes,
            before.back + seen.back,
            before.stripe_sized + seen.stripe_sized,
        )  # fmt: skip
    return found


def _requests(records: np.ndarray, names: dict[int, int]) -> Iterator[tuple]:
    """Name, direction, and start, offset and size of the requests to the system on the files of
    these ids, as they were recorded."""
    if not names:
        return
    records = records[(records["layer"] == POSIX) & np.isin(records["file"], list(names))
        & ((records["flags"] & ERROR) == 0)]
    for direction in "RW":
        some = records[class_codes()[records["op"]] == ord(direction)]
        for number in np.unique(some["file"]).tolist():
            one = some[some["file"] == number]
            sizes = (one["offset_size"] >> np.uint64(48) << np.uint64(32)) | one["size_low"]
            yield names[number], direction, one["start"], one[
                "offset_size"] & _UNKNOWN_OFFSET, sizes


def _gaps_of(offset: np.ndarray, size: np.ndarray, stripe: int | None) -> Gaps:
    """Of one rank's requests in the order in which they began. Those at unknown offsets follow on
    nothing."""
    known = offset != int(_UNKNOWN_OFFSET)
    pairs = known[1:] & known[:-1]
    jumps = np.where(pairs, offset[1:] - (offset[:-1] + size[:-1]), 0)
    ahead = jumps[jumps > 0]
    return Gaps(len(ahead), int(ahead.sum()), int((jumps < 0).sum()), int((size == stripe).sum())
        if stripe else 0)


@figure
def mpi_files_of(step: StepReport) -> list[MpiFile]:
    """Files opened through MPI-IO."""
    return mpi_files(step.name, step.data, step.members, step.names)


def all_mpi_files(report: Report) -> list[MpiFile]:
    """Step by step."""
    return [one for step in report.steps for one in mpi_files_of(step)]
