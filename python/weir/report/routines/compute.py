# SPDX-License-Identifier: Apache-2.0
"""Calls, bytes and time by routine: the rows of the summary and of the detail of a file.

Each row is a routine that the application called; what a language's library did below it is moved
to the statement that caused it, so that the columns add up to the total, and is listed once more
below, as the system saw it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from weir.analysis.columns import Columns, Row, class_codes, merged, rows
from weir.analysis.names import NO_NAME
from weir.analysis.ranks import in_order
from weir.report.frame.build import StepReport
from weir.trace.ops import BELOW, FORTRAN, PARTS, POSIX, STDIO, has_own_time, op_named, ops

_STATEMENT = {"R": "fortran_read", "W": "fortran_write", "O": "fortran_open", "C": "fortran_close",
    "M": "fortran_close"}


@dataclass(frozen=True)
class Routine:
    routine: str
    calls: int
    bytes: int
    ns: int


@dataclass(frozen=True)
class RoutineTable:
    """rows add up to total; below: system calls that a language's library made, already counted in
    rows."""

    rows: tuple[Routine, ...]
    total: Routine
    below: tuple[Routine, ...]


@dataclass(frozen=True)
class FileDetail:
    """What one rank did with one file."""

    rank: int
    name: int
    table: RoutineTable


def routine_table(columns: Columns) -> RoutineTable:
    return _table(rows(merged(columns, "op", "layer", "flags")))


def file_details(columns: Columns) -> list[FileDetail]:
    """A table for each rank and file, by rank, then in the order in which the rank first used its
    files."""
    table = merged(columns, "rank", "name", "op", "layer", "flags")
    first: dict[tuple[int, int], int] = {}
    for rank, name, ns in zip(table.rank.tolist(), table.name.tolist(), table.first_ns.tolist()):
        key = (rank, name)
        first[key] = min(ns, first.get(key, ns))
    made = [
        FileDetail(rank, name, _table(group))
        for (rank, name), group in groupby(rows(table), key=lambda row: (row.rank, row.name))
        if name != NO_NAME
    ]
    place = {rank: at for at, rank in enumerate(in_order(one.rank for one in made))}
    return sorted(made, key=lambda one: (place[one.rank], first[one.rank, one.name], one.name))


def is_system_below(row: Row) -> bool:
    """A system call that a language's library made for a statement."""
    return bool(row.flags & BELOW) and row.layer in (POSIX,
        STDIO) and ops()[row.op].name not in PARTS


def moved_bytes(row: Row) -> int:
    return row.bytes if row.layer in (POSIX, STDIO) and chr(class_codes()[row.op]) in "RW" else 0


def _table(group: Iterable[Row]) -> RoutineTable:
    shown: dict[int, list[int]] = {}
    below: dict[int, list[int]] = {}
    for row in group:
        op, target = ops()[row.op], row.op
        own_ns = row.ns if has_own_time(row.op, row.layer, row.flags) else 0
        calls = 0 if row.flags & BELOW else row.calls
        if is_system_below(row):
            target = op_named(_STATEMENT[op.op_class]).value
            _add(below, row.op, row.calls, moved_bytes(row), row.ns)
        if calls or own_ns or moved_bytes(row) or target == row.op:
            _add(shown, target, calls, moved_bytes(row), own_ns)
    table = _ordered(shown)
    total = Routine("TOTAL", *(sum(getattr(row, key) for row in table)
        for key in ("calls", "bytes", "ns")))
    return RoutineTable(table, total, _ordered(below))


def _add(into: dict[int, list[int]], op: int, *figures: int) -> None:
    sums = into.setdefault(op, [0, 0, 0])
    for i, figure in enumerate(figures):
        sums[i] += figure


def _ordered(sums: dict[int, list[int]]) -> tuple[Routine, ...]:
    """Statements, then stdio, then the system's calls: the order of the reference."""
    place = {FORTRAN: 0, STDIO: 1, POSIX: 2}
    order = sorted(sums, key=lambda op: (place.get(ops()[op].layer, 3), op))
    return tuple(Routine(ops()[op].name, *sums[op]) for op in order)


def routines_of(step: StepReport, rank: int | None = None) -> RoutineTable:
    """The summary of one rank, or of all."""
    return routine_table(step.of_rank(rank))


def details_of(step: StepReport, rank: int | None = None) -> list[FileDetail]:
    """File by file, of one rank or of all."""
    columns = step.columns
    if rank is not None:
        columns = columns.where(np.isin(columns.rank, step.names.ranks.numbers_of(rank)))
    return file_details(columns)
