# SPDX-License-Identifier: Apache-2.0
"""Fortran units: how many statements on which file became how many system requests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weir.analysis.columns import Columns, merged, rows
from weir.analysis.names import NameTable
from weir.analysis.step import StepData, name_numbers
from weir.report.frame.build import Report, figure
from weir.report.routines.compute import is_system_below, moved_bytes
from weir.trace.ops import FORTRAN, NESTED, ops

_UNKNOWN_UNIT = -1


@dataclass(frozen=True)
class FortranUnit:
    """Statements on one file by the units that it was connected to (usually one; none known at
    level detail).

    payload_bytes: of the I/O lists. ns: from begin to end of all statements; io_ns: of the calls
    in them that the Fortran library made. system_*: its reads and writes.
    """

    file: str
    units: tuple[int, ...]
    reads: int
    writes: int
    others: int
    payload_bytes: int
    ns: int
    io_ns: int
    system_requests: int
    system_bytes: int

    @property
    def statements(self) -> int:
        return self.reads + self.writes

    @property
    def library_ns(self) -> int:
        """What the library did itself: conversion to text and back, copies."""
        return max(self.ns - self.io_ns, 0)


def fortran_units(steps: list[StepData], masks: list[np.ndarray], columns: Columns,
        names: NameTable) -> list[FortranUnit]:
    """One entry for each file that Fortran statements touched, most statements first. columns:
    those of the chosen members."""
    fortran_names = np.unique(columns.name[columns.layer == FORTRAN])
    used = columns.where(np.isin(columns.name, fortran_names))
    units = _units_by_name(steps, masks, names)
    figures: dict[int, list[int]] = {}
    for row in rows(merged(used, "name", "op", "layer", "flags")):
        reads, writes, others, payload, ns, io_ns, requests, moved = range(8)
        sums = figures.setdefault(row.name, [0] * 8)
        op_class = ops()[row.op].op_class
        if row.layer == FORTRAN:
            sums[{"R": reads, "W": writes}.get(op_class, others)] += row.calls
            sums[payload] += row.bytes if op_class in "RW" else 0
            sums[ns] += row.ns
        elif is_system_below(row):
            sums[io_ns] += row.ns if row.flags & NESTED else 0
            sums[requests] += row.calls if op_class in "RW" else 0
            sums[moved] += moved_bytes(row)
    made = [FortranUnit(names[name], tuple(sorted(units.get(name, ()))), *sums)
        for name, sums in figures.items()]
    return sorted(made, key=lambda one: (-one.statements, one.file))


def _units_by_name(steps: list[StepData], masks: list[np.ndarray],
        names: NameTable) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for data, mask in zip(steps, masks):
        for index, file in enumerate(data.files):
            table = file.array("units")
            kept = mask[table["process"].astype(np.int64) + data.first_member(index)] & (
                table["unit"] != _UNKNOWN_UNIT)
            table = table[kept]
            numbers = name_numbers(file, table, names, data.name_numbers[index])
            for name, unit in zip(numbers.tolist(), table["unit"].tolist()):
                found.setdefault(name, set()).add(unit)
    return found


@figure
def units_of(report: Report) -> list[FortranUnit]:
    """Of the chosen members, all steps together."""
    return fortran_units(report.data, report.masks, report.sums, report.names)
