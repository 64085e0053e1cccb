# SPDX-License-Identifier: Apache-2.0
"""Access patterns of each file and rank, from the records.

native/reader/accesses.h passes over the records of each process; here the processes of a rank, and
the ranks of a file, become one row. Sequential and consecutive are Darshan's counters
(POSIX_SEQ_*, POSIX_CONSEC_*: darshan-runtime/lib/darshan-posix.c).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from weir.analysis.columns import starts
from weir.analysis.names import NameTable
from weir.analysis.remote import pass_over_records
from weir.analysis.step import StepData, name_numbers
from weir.report.files.last_names import by_last_number, renamed_of
from weir.report.frame.build import Report, StepReport, figure
from weir.report.mpi_io.compute import alignment_of
from weir.trace import TraceFile
from weir.trace._abi import ALIGNMENT
from weir.trace.file import threads_for

BLOCK_BYTES = 4096  # where the trace does not have the block size of the file
WAYS = ("read", "write")
SUMMED = (
    "calls bytes sequential consecutive first adjacent strided backward random unknown off_block "
    "off_stripe ns again"
).split()
MOST_COMMON = 4  # sizes and strides of a row
_SIZES, _STRIDES, _BACKWARD = (0, 1), (2, 3), (4, 5)  # kinds of common values, by way


@dataclass(frozen=True)
class Accesses:
    """Columns of one length: transfers of one direction (way) on one file by one rank of one node.
    commons: rows of (index of a row here, kind, value, count)."""

    columns: dict[str, np.ndarray]
    commons: np.ndarray

    def __len__(self) -> int:
        return len(self.columns["name"])


@figure
def accesses_of(step: StepReport) -> Accesses:
    """Of the chosen members of a step of level trace; empty at other levels."""
    if step.level != "trace":
        return _joined([])
    return _accesses(step.data, step.names, step.members, step.choice.everything)


@pass_over_records
def _accesses(
    data: StepData, names: NameTable, members: np.ndarray, all_names: bool
) -> Accesses:
    alignments = alignment_of(data)
    parts = [
        part
        for index, file in enumerate(data.files)
        for part in _of_file(data, index, file, names, members, all_names, alignments)
    ]
    return _joined(parts)


def _of_file(
    data: StepData, index: int, file: TraceFile, names: NameTable, members: np.ndarray,
    all_names: bool, alignments: dict[str, tuple[int | None, int | None]],
) -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:  # fmt: skip
    """The columns of reads, then those of writes, of one trace file."""
    numbers = data.name_numbers[index]
    of_text = np.zeros(len(numbers) + 1, ALIGNMENT)  # the last: of names that are lost
    known = [alignments.get(names[number], (None, None)) for number in numbers.tolist()]
    of_text["block_bytes"] = [block or BLOCK_BYTES for block, _ in (*known, (None, None))]
    of_text["stripe_bytes"] = [stripe or 0 for _, stripe in (*known, (None, None))]
    found, commons = file.accesses(of_text, all_names, threads_for(file.header.file_bytes))
    first = data.first_member(index)
    member = found["process"].astype(np.int64) + first
    chosen = members[member] if len(member) else np.zeros(0, bool)
    ranks = np.array([one.rank for one in data.members], np.int32)
    name = name_numbers(file, found, names, numbers) if len(found) else np.zeros(0, np.int32)
    text = file.texts_of(found["process"], found["file"]) if len(found) else np.zeros(0, np.uint32)
    at = np.minimum(text, len(numbers))
    for way in (0, 1):
        rows = np.flatnonzero(chosen & (found["calls"][:, way] > 0))
        place = np.full(len(found), -1)
        place[rows] = np.arange(len(rows))
        columns = {
            key: found[key][rows, way].astype(np.int64)
            for key in (*SUMMED[:-2], "begin", "end")
        }
        lengths = data.lines[index].lengths
        columns |= {
            "name": name[rows], "rank": ranks[member[rows]], "way": np.full(len(rows), way),
            "node": np.full(len(rows), index), "switches": found["switches"][rows].astype(np.int64),
            "ns": lengths(np.ascontiguousarray(found["ticks"][rows, way])).astype(np.int64),
            "longest_ns": lengths(
                np.ascontiguousarray(found["longest_ticks"][rows, way])
            ).astype(np.int64),
            "block": of_text["block_bytes"][at[rows]].astype(np.int64),
            "stripe": of_text["stripe_bytes"][at[rows]].astype(np.int64),
        }  # fmt: skip
        span = columns["end"] - columns["begin"]
        is_known = columns["unknown"] == 0
        columns["again"] = np.where(is_known, np.maximum(columns["bytes"] - span, 0), 0)
        mine = np.isin(commons["kind"], (_SIZES[way], _STRIDES[way], _BACKWARD[way]))
        mine &= place[commons["file"]] >= 0
        of = commons[mine]
        value = of["value"].astype(np.int64) * np.where(of["kind"] == _BACKWARD[way], -1, 1)
        yield columns, np.column_stack(
            (place[of["file"]], of["kind"] >= 2, value, of["count"])
        ).astype(np.int64)


def _joined(parts: list[tuple[dict[str, np.ndarray], np.ndarray]]) -> Accesses:
    keys = (*SUMMED, "begin", "end", "name", "rank", "way", "node", "switches", "longest_ns",
            "block", "stripe")  # fmt: skip
    columns, first = {}, 0
    for key in keys:
        columns[key] = np.concatenate([np.zeros(0, np.int64), *(part[key] for part, _ in parts)])
    commons = [np.zeros((0, 4), np.int64)]
    for part, common in parts:
        commons.append(common + np.array([first, 0, 0, 0]))
        first += len(part["name"])
    return Accesses(columns, np.concatenate(commons))


def _grouped(found: Accesses, *keys: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Order of the rows, where each group begins in it, and the group of each row."""
    order = np.lexsort([found.columns[key] for key in reversed(keys)])
    begins = starts(*(found.columns[key][order] for key in keys))
    group = np.zeros(len(order), np.int64)
    group[order] = np.repeat(np.arange(len(begins)), np.diff(np.r_[begins, len(order)]))
    return order, begins, group


def _common_of(found: Accesses, group: np.ndarray) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """By group and kind (0: sizes, 1: strides): the most common values and their counts, as
    Darshan orders them: by count, then the larger first."""
    commons = found.commons
    if not len(commons):
        return {}
    of = np.column_stack((group[commons[:, 0]], commons[:, 1], commons[:, 2]))
    unique, at = np.unique(of, axis=0, return_inverse=True)
    counts = np.zeros(len(unique), np.int64)
    np.add.at(counts, at.reshape(-1), commons[:, 3])
    made: dict[tuple[int, int], list[tuple[int, int]]] = {}
    order = np.lexsort((-unique[:, 2], -counts, unique[:, 1], unique[:, 0]))
    for (one, kind, value), count in zip(unique[order].tolist(), counts[order].tolist()):
        values = made.setdefault((one, kind), [])
        if len(values) < MOST_COMMON:
            values.append((value, count))
    return made


@figure
def by_last_names(report: Report) -> list[Accesses]:
    """Of each step, under the names that the files had last, as in the table of files."""
    found = []
    for step, renamed in zip(report.steps, renamed_of(report)):
        one = accesses_of(step)
        names = by_last_number(one.columns["name"], renamed)
        found.append(replace(one, columns=one.columns | {"name": names}))
    return found


def _rows(step: StepReport, found: Accesses, *keys: str) -> list[dict[str, Any]]:
    """A row for each combination of the keys, sums over all else."""
    if not len(found):
        return []
    order, begins, group = _grouped(found, *keys)
    ordered = {key: column[order] for key, column in found.columns.items()}
    sums = {key: np.add.reduceat(ordered[key], begins).tolist() for key in (*SUMMED, "switches")}
    first = {key: ordered[key][begins].tolist() for key in ("name", "way", "rank", "block",
        "stripe")}
    begin = np.minimum.reduceat(ordered["begin"], begins).tolist()
    end = np.maximum.reduceat(ordered["end"], begins).tolist()
    longest = np.maximum.reduceat(ordered["longest_ns"], begins).tolist()
    commons = _common_of(found, group)
    return [
        {"step": step.name, "file": step.names[first["name"][i]], "rank": first["rank"][i],
         "way": WAYS[first["way"][i]], "begin": begin[i], "end": end[i],
         "longest_ns": longest[i], "block": first["block"][i], "stripe": first["stripe"][i] or None,
         "sizes": _words(commons.get((i, 0), ())), "strides": _words(commons.get((i, 1), ())),
         **{key: values[i] for key, values in sums.items()},
         "off_stripe": sums["off_stripe"][i] if first["stripe"][i] else None}
        for i in range(len(begins))
    ]  # fmt: skip


def _words(values: Any) -> tuple[str, ...]:
    return tuple(f"{value}x{count}" for value, count in values)


@figure
def patterns_by_rank(report: Report) -> list[dict[str, Any]]:
    """A row for each step, file, direction and rank."""
    steps = zip(report.steps, by_last_names(report))
    return [row for step, found in steps for row in _rows(step, found, "name", "way", "rank")]


@figure
def patterns_of(report: Report) -> list[dict[str, Any]]:
    """A row for each step, file and direction, most bytes first."""
    steps = zip(report.steps, by_last_names(report))
    made = [row for step, found in steps for row in _of_files(step, found)]
    return sorted(made, key=lambda row: (-row["bytes"], row["file"], row["way"]))


def _of_files(step: StepReport, found: Accesses) -> Iterator[dict[str, Any]]:
    rows, of_ranks = _rows(step, found, "name", "way"), _rows(step, found, "name", "way", "rank")
    ranks: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in of_ranks:
        ranks.setdefault((row["file"], row["way"]), []).append(row)
    interleaved = _interleaved(found)
    for row in rows:
        mine = ranks[row["file"], row["way"]]
        slowest, fastest = (pick(mine, key=lambda one: one["ns"]) for pick in (max, min))
        number = step.names.number(row["file"])
        yield row | {
            "ranks": len(mine), "interleaved": interleaved.get((number, WAYS.index(row["way"])), 0),
            "fastest_rank": fastest["rank"], "fastest_ns": fastest["ns"],
            "slowest_rank": slowest["rank"], "slowest_ns": slowest["ns"],
            "deviation_ns": round(float(np.std([one["ns"] for one in mine]))),
            "deviation_bytes": round(float(np.std([one["bytes"] for one in mine]))),
        }  # fmt: skip


def _interleaved(found: Accesses) -> dict[tuple[int, int], int]:
    """By name and way: ranks whose range of bytes begins before that of another rank of their node
    ends, and the other way round."""
    columns = found.columns
    has_place = np.flatnonzero(columns["end"] > columns["begin"])
    if not len(has_place):
        return {}
    order = has_place[np.lexsort([columns[key][has_place]
        for key in ("begin", "node", "way", "name")])]
    counts: dict[tuple[int, int], int] = {}
    keys = ("name", "way", "node")
    begins = starts(*(columns[key][order] for key in keys))
    for some in np.split(order, begins[1:]):
        begin, end, rank = (columns[key][some] for key in ("begin", "end", "rank"))
        if len(np.unique(rank)) < 2:
            continue
        before = np.r_[-1, np.maximum.accumulate(end)[:-1]]
        after = np.r_[begin[1:], np.iinfo(np.int64).max]
        mixed = len(np.unique(rank[(begin < before) | (after < end)]))
        key = int(columns["name"][some[0]]), int(columns["way"][some[0]])
        counts[key] = counts.get(key, 0) + mixed
    return counts
