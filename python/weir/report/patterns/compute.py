# SPDX-License-Identifier: Apache-2.0
"""Access patterns of each file and rank, from the records.

native/reader/accesses.h passes over the records of each process, step_accesses.h makes one row of
the ranks of a file. Sequential and consecutive are Darshan's counters
(POSIX_SEQ_*, POSIX_CONSEC_*: darshan-runtime/lib/darshan-posix.c).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from weir.analysis.columns import starts
from weir.analysis.memory import return_memory
from weir.analysis.remote import pass_over_records
from weir.analysis.step import StepData
from weir.report.files.last_names import by_last_number, renamed_of
from weir.report.frame.build import Report, StepReport, figure
from weir.report.patterns.accesses import SUMMED, Accesses, no_accesses, read_accesses

WAYS = ("read", "write")
MOST_COMMON = 4  # sizes and strides of a row


@figure
def accesses_of(report: Report) -> list[Accesses]:
    """Of the chosen members of each step, all together; empty at other levels than trace."""
    return reading_accesses(report)()


def reading_accesses(report: Report, spared: int = 0) -> Callable[[], list[Accesses]]:
    """What makes accesses_of(), of figures that are known. spared: processors for others."""
    asked = list(zip(report.steps, renamed_of(report)))
    return lambda: [_accesses_of(*one, False, spared) for one in asked]


@figure
def accesses_by_rank(report: Report) -> list[Accesses]:
    """The same of each rank, with the common sizes and strides of each."""
    return [_accesses_of(*one, True) for one in zip(report.steps, renamed_of(report))]


def _accesses_of(
    step: StepReport, renamed: np.ndarray, by_process: bool, spared: int = 0
) -> Accesses:
    apart = np.unique(renamed)
    if step.level != "trace":
        return no_accesses()
    return _accesses(step.data, step.names, step.members, step.choice.everything, by_process, apart,
        spared)


@pass_over_records
def _accesses(data: StepData, *arguments: Any) -> Accesses:
    made = read_accesses(data, *arguments)
    return_memory()
    return made


def _grouped(
    columns: dict[str, np.ndarray], *keys: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Order of the rows, where each group begins in it, and the group of each row."""
    order = np.lexsort([columns[key] for key in reversed(keys)])
    begins = starts(*(columns[key][order] for key in keys))
    group = np.zeros(len(order), np.int64)
    group[order] = np.repeat(np.arange(len(begins)), np.diff(np.r_[begins, len(order)]))
    return order, begins, group


def _common_of(
    found: Accesses, group: np.ndarray, wanted: np.ndarray
) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """By group and kind (0: sizes, 1: strides), of the wanted groups: the most common values and
    their counts, as Darshan orders them: by count, then the larger first."""
    of_group, kind, value, count = found.commons.T
    rows = np.flatnonzero(np.isin(group[of_group], wanted))
    if not len(rows):
        return {}
    keys = group[of_group[rows]], kind[rows], value[rows]
    order = np.lexsort(keys[::-1])
    begins = starts(*(key[order] for key in keys))
    counts = np.add.reduceat(count[rows][order], begins)
    ones, kinds, values = (key[order][begins] for key in keys)
    order = np.lexsort((-values, -counts, kinds, ones))
    begins = starts(ones[order], kinds[order])
    nth = np.arange(len(order)) - np.repeat(begins, np.diff(np.r_[begins, len(order)]))
    made: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for at in order[nth < MOST_COMMON].tolist():
        of = made.setdefault((int(ones[at]), int(kinds[at])), [])
        of.append((int(values[at]), int(counts[at])))
    return made


def _by_last_names(
    report: Report, accesses: Callable[[Report], list[Accesses]]
) -> Iterator[tuple[StepReport, Accesses, np.ndarray]]:
    """Of each step, under the names that the files had last, as in the table of files; and these by
    number of a name."""
    for step, renamed, one in zip(report.steps, renamed_of(report), accesses(report)):
        if len(one):
            name = by_last_number(one.columns["name"], renamed)
            last = by_last_number(np.arange(len(step.names.names)), renamed)
            yield step, replace(one, columns=one.columns | {"name": name}), last


_RANKS = ("rank", "fastest_rank", "slowest_rank")
_FIGURES = (*SUMMED, "switches", "name", "way", "rank", "block", "stripe", "begin", "end",
    "longest_ns")  # fmt: skip


class _Groups:
    """The rows of one step: one for each combination of the keys, sums over all else. figures: by
    name, arrays of one length."""

    def __init__(self, step: StepReport, found: Accesses, *keys: str):
        self._step, self._found = step, found
        columns = found.columns
        order, begins, self._group = _grouped(columns, *keys)
        if len(begins) == len(order) and (order[1:] > order[:-1]).all():  # nothing is added up
            self.figures = {key: columns[key] for key in _FIGURES}
            return
        self.figures = {
            key: np.add.reduceat(columns[key][order], begins) for key in (*SUMMED, "switches")
        }
        for key in ("name", "way", "rank", "block", "stripe"):
            self.figures[key] = columns[key][order[begins]]
        self.figures["begin"] = np.minimum.reduceat(columns["begin"][order], begins)
        for key in ("end", "longest_ns"):
            self.figures[key] = np.maximum.reduceat(columns[key][order], begins)

    def __len__(self) -> int:
        return len(self.figures["name"])

    def rows(self, wanted: np.ndarray) -> list[dict[str, Any]]:
        """Some of the rows, in this order."""
        commons = _common_of(self._found, self._group, wanted)
        names, columns = self._step.names, (column[wanted] for column in self.figures.values())
        every = zip(*(column.tolist() for column in columns))
        made = [dict(zip(self.figures, one)) for one in every]
        for at, row in zip(wanted.tolist(), made):
            row |= {
                "step": self._step.name, "file": names[row.pop("name")], "way": WAYS[row["way"]],
                "sizes": _words(commons.get((at, 0), ())),
                "strides": _words(commons.get((at, 1), ())),
            }  # fmt: skip
            row |= {key: names.ranks[row[key]] for key in _RANKS if key in row}
            if not row["stripe"]:
                row["stripe"] = row["off_stripe"] = None
        return made


_BATCH = 4096  # rows that are made at once


class Rows(Sequence):
    """Rows of all steps that are made when they are asked for: of many files and ranks only the
    first ones are. where: index of the step's part, and of the row in it, of each."""

    def __init__(self, parts: Sequence[_Groups], where: np.ndarray):
        self._parts, self._where = parts, where

    def __len__(self) -> int:
        return len(self._where)

    def __getitem__(self, at: Any) -> Any:
        if not isinstance(at, slice):
            return self[at : at + 1 or None][0]
        where = self._where[at]
        made: list[Any] = [None] * len(where)
        for number in np.unique(where[:, 0]).tolist():
            its = np.flatnonzero(where[:, 0] == number)
            for place, row in zip(its.tolist(), self._parts[number].rows(where[its, 1])):
                made[place] = row
        return made

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for first in range(0, len(self), _BATCH):
            yield from self[first : first + _BATCH]

    @property
    def steps(self) -> np.ndarray:
        """Of each row: the index of its step among those with accesses."""
        return self._where[:, 0]

    def columns(self, *names: str) -> list[np.ndarray]:
        """Figures of all rows, without making these."""
        found = [np.zeros(len(self), np.int64) for _ in names]
        for number, part in enumerate(self._parts):
            its = np.flatnonzero(self._where[:, 0] == number)
            for into, name in zip(found, names):
                into[its] = part.figures[name][self._where[its, 1]]
        return found

    def chosen(self, mask: np.ndarray) -> Rows:
        return Rows(self._parts, self._where[mask])


def _places(parts: Sequence[_Groups]) -> np.ndarray:
    every = [np.column_stack((np.full(len(one), at), np.arange(len(one))))
        for at, one in enumerate(parts)]
    return np.concatenate([np.zeros((0, 2), np.int64), *every])


def _words(values: Any) -> tuple[str, ...]:
    return tuple(f"{value}x{count}" for value, count in values)


@figure
def patterns_by_rank(report: Report) -> Rows:
    """A row for each step, file, direction and rank."""
    parts = [
        _Groups(step, found, "name", "way", "rank")
        for step, found, _ in _by_last_names(report, accesses_by_rank)
    ]
    return Rows(parts, _places(parts))


@figure
def patterns_of(report: Report) -> Rows:
    """A row for each step, file and direction, most bytes first."""
    parts = [_of_files(*one) for one in _by_last_names(report, accesses_of)]
    rows = Rows(parts, _places(parts))
    name, way, moved = rows.columns("name", "way", "bytes")
    numbers, at = np.unique(name, return_inverse=True)
    texts = [report.names[number] for number in numbers.tolist()]
    place = np.empty(len(texts), np.int64)
    place[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    return rows.chosen(np.lexsort((way, place[at], -moved)))


def _of_files(step: StepReport, found: Accesses, last_name: np.ndarray) -> _Groups:
    """With what differs between the ranks of a file."""
    rows, files = _Groups(step, found, "name", "way"), found.ranks.files(last_name)
    for key in ("ranks", "interleaved", *(f"{which}_{key}" for which in ("fastest", "slowest")
            for key in ("rank", "ns"))):
        rows.figures[key] = files[key]
    for key in ("ns", "bytes"):
        squares = files[f"squares_{key}"] / files["ranks"]
        rows.figures[f"deviation_{key}"] = np.rint(np.sqrt(squares)).astype(np.int64)
    return rows
