# SPDX-License-Identifier: Apache-2.0
"""Calls, bytes, seconds and files of any choice of rows."""

from __future__ import annotations

from collections.abc import Iterable
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


def totals_by_rank(columns: Columns, ranks: Iterable[int]) -> dict[int, Totals]:
    """Totals of each of these ranks, those without any I/O included."""
    order = np.argsort(columns.rank, kind="stable")
    ordered = columns.where(order)
    made = {}
    for rank in ranks:
        begin, end = np.searchsorted(ordered.rank, [rank, rank + 1])
        made[rank] = totals(ordered.where(slice(begin, end)))
    return made
