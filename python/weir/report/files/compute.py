# SPDX-License-Identifier: Apache-2.0
"""Files: what was done to each, over ranks and steps; the slowest, the largest, the most called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from weir.analysis.columns import Columns, starts
from weir.analysis.names import NO_NAME, NameTable, matches
from weir.report.files.last_names import columns_by_last_name
from weir.report.frame.build import Report, figure
from weir.trace.ops import ops

SORT_KEYS = ("time", "mb", "rate", "calls", "file")


class FileOp(NamedTuple):
    """All records of one operation on a file; `below` of its calls were made by a language's
    library."""

    op: str
    calls: int
    bytes: int
    ns: int
    below: int


class _Ops(Sequence):
    """Some rows of columns that all files share, as FileOp: many files have as many small objects
    otherwise. columns: the value of the operation, then the figures."""

    __slots__ = ("_columns", "_begin", "_end")

    def __init__(self, columns: tuple[np.ndarray, ...], begin: int, end: int):
        self._columns, self._begin, self._end = columns, begin, end

    def __len__(self) -> int:
        return self._end - self._begin

    def __iter__(self) -> Iterator[FileOp]:
        op, *figures = (column[self._begin : self._end].tolist() for column in self._columns)
        return map(FileOp, [ops()[value].name for value in op], *figures)

    def __getitem__(self, at):
        return tuple(self)[at]

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))


@dataclass(frozen=True, slots=True)
class FileTotals:
    file: str
    calls: int
    bytes_read: int
    bytes_written: int
    ns: int
    ops: Sequence[FileOp]
    also: tuple[str, ...] = ()  # other names under which it was used: earlier ones, and links
    failed: int = 0  # calls that returned an error, those of names that do not exist among them

    @property
    def bytes(self) -> int:
        return self.bytes_read + self.bytes_written

    @property
    def rate_mb_s(self) -> float:
        """MB/s while in I/O on this file."""
        return self.bytes * 1e3 / self.ns if self.ns else 0.0


@dataclass(frozen=True)
class FileTable:
    """Files by name, each figure of FileTotals as an array. number: of the name. op_*: of one
    operation on one file; those of file i from first[i] to before end[i]."""

    names: list[str]
    number: np.ndarray
    calls: np.ndarray
    bytes_read: np.ndarray
    bytes_written: np.ndarray
    ns: np.ndarray
    failed: np.ndarray
    first: np.ndarray
    end: np.ndarray
    op: np.ndarray
    op_calls: np.ndarray
    op_bytes: np.ndarray
    op_ns: np.ndarray
    op_below: np.ndarray
    also: dict[int, tuple[str, ...]]

    def __len__(self) -> int:
        return len(self.names)

    def of_ops(self, values: Sequence[int], column: np.ndarray) -> np.ndarray:
        """What some operations have in a column, added up for each file."""
        sums = np.r_[0, np.cumsum(np.where(np.isin(self.op, values), column, 0))]
        return sums[self.end] - sums[self.first]

    @cached_property
    def totals(self) -> list[FileTotals]:
        columns = (self.op, self.op_calls, self.op_bytes, self.op_ns, self.op_below)
        figures = (self.calls, self.bytes_read, self.bytes_written, self.ns, self.failed)
        its_ops = map(partial(_Ops, columns), self.first.tolist(), self.end.tolist())
        also = self.also
        return [
            FileTotals(name, *one, every, also.get(number, ()), failed)
            for name, number, (*one, failed), every in zip(self.names, self.number.tolist(),
                zip(*(figure.tolist() for figure in figures)), its_ops)
        ]


def file_table(columns: Columns, names: NameTable, used: np.ndarray | None = None) -> FileTable:
    """used: for each row the name under which it was recorded, where that may be another one."""
    also = {} if used is None else _other_names(columns.name, used, names)
    table = columns.where(columns.name != NO_NAME)
    table = table.where(np.lexsort((table.op, table.name)))
    by_name, by_op = (starts(*keys) if len(table) else np.zeros(0, np.int64)
        for keys in ((table.name,), (table.name, table.op)))
    read = np.where(table.by_code("R"), table.moved, 0)
    figures = (table.app_calls, read, table.moved - read, table.own_ns, table.errors)
    parts = (table.calls, np.where(table.by_code("RW"), table.bytes, 0), table.ns,
        table.calls - table.app_calls)
    limits = np.r_[np.searchsorted(by_op, by_name), len(by_op)]
    number = table.name[by_name]
    texts = [names[one] for one in number.tolist()]
    order = np.array(sorted(range(len(texts)), key=texts.__getitem__), np.int64)
    return FileTable(
        [texts[at] for at in order.tolist()], number[order],
        *(_added(figure, by_name)[order] for figure in figures),
        limits[:-1][order], limits[1:][order], table.op[by_op],
        *(_added(part, by_op) for part in parts), also,
    )  # fmt: skip


def _added(values: np.ndarray, begins: np.ndarray) -> np.ndarray:
    made = np.add.reduceat(values, begins) if len(begins) else values[:0]
    return made.astype(np.int64)


def file_totals(columns: Columns, names: NameTable,
        used: np.ndarray | None = None) -> list[FileTotals]:
    """One entry for each name, by name. used: as of file_table()."""
    return file_table(columns, names, used).totals


def _other_names(name: np.ndarray, used: np.ndarray,
        names: NameTable) -> dict[int, tuple[str, ...]]:
    found: dict[int, set[str]] = {}
    other = np.flatnonzero((name != used) & (used != NO_NAME))
    for one, was in set(zip(name[other].tolist(), used[other].tolist())):
        found.setdefault(one, set()).add(names[was])
    return {one: tuple(sorted(every)) for one, every in found.items()}


def chosen(
    files: Sequence[FileTotals], *, by: str = "time", top: int | None = None, threshold_ns: int = 0,
    pattern: str | None = None
) -> list[FileTotals]:
    """Files sorted by a key of SORT_KEYS (largest first, names rising), those under the threshold
    left out, then the first `top`."""
    if by not in SORT_KEYS:
        raise ValueError(f"files cannot be sorted by {by!r}; choose one of {', '.join(SORT_KEYS)}")
    keys = {
        "time": lambda f: (-f.ns, f.file),
        "mb": lambda f: (-f.bytes, f.file),
        "rate": lambda f: (-f.rate_mb_s, f.file),
        "calls": lambda f: (-f.calls, f.file),
        "file": lambda f: f.file,
    }
    kept = [f for f in files if f.ns >= threshold_ns
        and (pattern is None or any(matches(name, pattern) for name in (f.file, *f.also)))]
    kept.sort(key=keys[by])
    return kept if top is None else kept[:top]


@figure
def file_table_of(report: Report) -> FileTable:
    """Files under the names that they had last."""
    columns, used = columns_by_last_name(report)
    return file_table(columns, report.names, used)


def files_of(report: Report) -> list[FileTotals]:
    """The same, an entry for each."""
    return file_table_of(report).totals


def files_of_rank(report: Report, rank: int | None) -> list[FileTotals]:
    """Files of one rank over all steps; None: of all ranks."""
    if rank is None:
        return files_of(report)
    columns, used = columns_by_last_name(report)
    of_rank = np.isin(columns.rank, report.names.ranks.numbers_of(rank))
    return file_totals(columns.where(of_rank), report.names, used[of_rank])
