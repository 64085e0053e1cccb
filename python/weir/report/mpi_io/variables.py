# SPDX-License-Identifier: Apache-2.0
"""Calls of PnetCDF, netCDF-C and HDF5 on their data sets: calls, bytes and time of each variable.

Source of the records: docs/formats/trace.md, section 3.8. Bytes are those of the program's own
buffers, before conversion and compression.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

import numpy as np

from weir.analysis.columns import Columns, merged, rows
from weir.analysis.names import NO_NAME, NameTable, fold
from weir.report.frame.build import Report, StepReport, figure
from weir.trace.ops import HDF5, LAYER_NAMES, NETCDF, PNETCDF, ops

_PUT, _GET = ("library_put", "library_start_put"), ("library_get", "library_start_get")


@dataclass(frozen=True)
class Variable:
    """One variable of one file in one step; figures of all ranks, busiest_ns of the one that spent
    most."""

    step: str
    library: str
    file: str
    variable: str
    ranks: int
    puts: int
    put_bytes: int
    put_ns: int
    gets: int
    get_bytes: int
    get_ns: int
    busiest_ns: int

    @property
    def ns(self) -> int:
        return self.put_ns + self.get_ns

    @property
    def bytes(self) -> int:
        return self.put_bytes + self.get_bytes


def is_variable(columns: Columns) -> np.ndarray:
    """Mask of the calls on variables."""
    return np.isin(columns.layer, (PNETCDF, NETCDF, HDF5)) & (columns.name != NO_NAME)


def variables(step: str, columns: Columns, names: NameTable) -> list[Variable]:
    """The variables of one step, the slowest first, of the members that columns has."""
    own = columns.where(is_variable(columns))
    cells: dict[tuple[int, int], dict[str, list[int]]] = {}
    by_rank: dict[tuple[int, int], dict[int, int]] = {}
    for row in rows(merged(own, "layer", "name", "rank", "op")):
        direction = "put" if ops()[row.op].name in _PUT else "get" if ops(
            )[row.op].name in _GET else None
        if direction is None:
            continue
        key = row.layer, row.name
        sums = cells.setdefault(key, {"put": [0, 0, 0], "get": [0, 0, 0]})[direction]
        for i, amount in enumerate((row.calls, row.bytes, row.ns)):
            sums[i] += amount
        of = by_rank.setdefault(key, {})
        of[row.rank] = of.get(row.rank, 0) + row.ns
    paths = set(names.names)
    made = [
        Variable(step, LAYER_NAMES[key[0]], *path_and_variable(names[key[1]], paths),
            len(by_rank[key]), *sums["put"], *sums["get"], max(by_rank[key].values()))
        for key, sums in cells.items()
    ]
    return sorted(made, key=lambda one: (-one.ns, one.file, one.variable))


def path_and_variable(name: str, paths: Container[str]) -> tuple[str, str]:
    """Path and variable of "library:path:variable", of which both may have colons: the longest path
    that the trace has as a file's, else all before the last colon."""
    words = name.partition(":")[2].split(":")
    for count in range(len(words) - 1, 0, -1):
        path = fold(":".join(words[:count]))
        if path in paths:
            return path, ":".join(words[count:])
    return fold(":".join(words[:-1])), words[-1]


@figure
def variables_of(step: StepReport) -> list[Variable]:
    """Variables of PnetCDF, netCDF-C and HDF5, the slowest first."""
    return variables(step.name, step.seen_where(is_variable), step.names)


def all_variables(report: Report) -> list[Variable]:
    """Of all steps, the slowest first."""
    return sorted((one for step in report.steps for one in variables_of(step)),
        key=lambda one: -one.ns)
