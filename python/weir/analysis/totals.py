# SPDX-License-Identifier: Apache-2.0
"""Calls, bytes, seconds and files of any choice of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from weir.analysis.columns import Columns
from weir.analysis.names import NO_NAME

CALLS = "RWOCM"  # classes that count as calls


@dataclass(frozen=True)
class Totals:
    """calls: made by the application. bytes: moved at the lowest level seen. ns: not nested. files:
    names opened, read or written; None: no names were kept (level summary)."""

    calls: int = 0
    bytes: int = 0
    ns: int = 0
    files: int | None = 0

    @property
    def seconds(self) -> float:
        return self.ns / 1e9


def totals(columns: Columns) -> Totals:
    touched = columns.name[columns.is_file & columns.by_code("ORW") & (columns.name != NO_NAME)]
    return Totals(
        int(columns.app_calls.sum()), int(columns.moved.sum()), int(columns.own_ns.sum()),
        len(np.unique(touched))
    )


def totals_by_rank(
    columns: Columns, ranks: Iterable[int], files_of: Mapping[int, int]
) -> dict[int, Totals]:
    """Totals of each of these ranks, those without any I/O included; all I/O in the columns is of
    one of them. files_of: the files of each."""
    every = np.array(sorted(ranks), np.int64)
    at = np.searchsorted(every, columns.rank)
    sums = np.zeros((3, len(every)), np.int64)
    for into, part in zip(sums, (columns.app_calls, columns.moved, columns.own_ns)):
        np.add.at(into, at, part)
    files = [files_of.get(rank, 0) for rank in every.tolist()]
    figures = zip(*(column.tolist() for column in sums), files)
    made = dict(zip(every.tolist(), (Totals(*one) for one in figures)))
    return {rank: made[rank] for rank in ranks}
