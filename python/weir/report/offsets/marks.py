# SPDX-License-Identifier: Apache-2.0
"""Requests as boxes of time and offset, and fewer boxes for many requests.

Requests of one direction that begin in the same cell of a grid become one box: the smallest that
holds them all, with their number, and their rank where it is one. Cells are powers of two long, so
that boxes that were combined combine further without knowing their requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

SEVERAL = int(np.iinfo(np.int64).min)  # in place of a rank
_FINEST = 12  # bits: the grid begins with so many cells an axis


@dataclass(frozen=True)
class Marks:
    """Arrays of one length. way: 0 read, 1 written; begin_ns, end_ns, on the axis of the plot;
    offset, until: bytes of the file; count: requests."""

    way: np.ndarray
    rank: np.ndarray
    begin_ns: np.ndarray
    end_ns: np.ndarray
    offset: np.ndarray
    until: np.ndarray
    count: np.ndarray

    def __len__(self) -> int:
        return len(self.way)

    def of(self, rows: np.ndarray) -> Marks:
        return Marks(*(getattr(self, one.name)[rows] for one in fields(self)))

    @staticmethod
    def joined(parts: Sequence[Marks]) -> Marks:
        nothing = np.empty(0, np.int64)
        return Marks(*(np.concatenate([nothing, *(getattr(part, one.name) for part in parts)])
            for one in fields(Marks)))


@dataclass(frozen=True)
class Cells:
    """Lengths of a cell as powers of two: of time in ns, of offset in bytes."""

    time: int
    offset: int


def combined(marks: Marks, cells: Cells) -> Marks:
    """One mark for each direction and cell in which marks begin."""
    if not len(marks):
        return marks
    keys = (marks.offset >> cells.offset, marks.begin_ns >> cells.time, marks.way)
    order = np.lexsort(keys)
    changes = [np.diff(key[order]) != 0 for key in keys]
    begins = np.flatnonzero(np.r_[True, np.logical_or.reduce(changes)])
    one = marks.of(order)
    least = np.minimum.reduceat(one.rank, begins)
    is_one = least == np.maximum.reduceat(one.rank, begins)
    return Marks(
        one.way[begins], np.where(is_one, least, SEVERAL),
        np.minimum.reduceat(one.begin_ns, begins), np.maximum.reduceat(one.end_ns, begins),
        np.minimum.reduceat(one.offset, begins), np.maximum.reduceat(one.until, begins),
        np.add.reduceat(one.count, begins),
    )  # fmt: skip


class Plot:
    """The marks of one file: requests as they are while there are few, else combined."""

    def __init__(self, most: int):
        self.most = most
        self.cells: Cells | None = None
        self._parts: list[Marks] = []
        self._length = 0

    def add(self, marks: Marks) -> None:
        if len(marks):
            self._parts.append(marks)
            self._length += len(marks)
            if self._length > 4 * self.most:
                self._fit()

    def marks(self) -> Marks:
        """By direction and time."""
        self._fit()
        found = Marks.joined(self._parts)
        return found.of(np.lexsort((found.offset, found.begin_ns, found.way)))

    def _fit(self) -> None:
        found = Marks.joined(self._parts)
        if len(found) > self.most or self.cells is not None:
            found = self._combine(found)
        self._parts, self._length = [found], len(found)

    def _combine(self, found: Marks) -> Marks:
        spans = int(found.end_ns.max()), int(found.until.max())
        bits = [max(0, span.bit_length() - _FINEST) for span in spans]
        if self.cells is not None:
            bits = [max(bits[0], self.cells.time), max(bits[1], self.cells.offset)]
        while True:
            self.cells = Cells(*bits)
            found = combined(found, self.cells)
            if len(found) <= self.most:
                return found
            # the axis with more cells
            bits[spans[0] >> bits[0] < spans[1] >> bits[1]] += 1
