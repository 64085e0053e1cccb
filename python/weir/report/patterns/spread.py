# SPDX-License-Identifier: Apache-2.0
"""What differs between the ranks of a file: how many they are, the fastest and the slowest, how far
their time and bytes lie apart, whose ranges of bytes interleave. Accumulated node by node, without
a row for each rank and file (native/reader/spread.cc).
"""

from __future__ import annotations

import ctypes as c
from dataclasses import dataclass, field

import numpy as np

from weir.trace._abi import SPREAD_FILE, SPREAD_ROW, pointer_to, spread_functions

_RANKS, _INTERLEAVED = 1, 2  # what a row counts for
_FIGURES = ("name", "way", "rank", "node", "ns", "bytes", "begin", "end")
_NO_NUMBERS = np.zeros(0, np.int64)


class _Sums:
    """Files as they are added up so far."""

    def __init__(self) -> None:
        self._handle = c.c_void_p(spread_functions()[0]())
        if not self._handle:
            raise _no_memory()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            spread_functions()[4](c.byref(self._handle))

    def add(self, rows: np.ndarray) -> None:
        """All rows (SPREAD_ROW) of some ranks."""
        if spread_functions()[1](self._handle, pointer_to(rows), len(rows)):
            raise _no_memory()

    def join(self, files: np.ndarray) -> None:
        """What was found of other ranks."""
        if spread_functions()[2](self._handle, pointer_to(files), len(files)):
            raise _no_memory()

    def files(self) -> np.ndarray:
        """A copy, in the order of names and directions."""
        count = c.c_uint64()
        place = spread_functions()[3](self._handle, c.byref(count))
        if not count.value:
            return np.zeros(0, SPREAD_FILE)
        kept = (c.c_char * (count.value * SPREAD_FILE.itemsize)).from_address(place)
        found = np.frombuffer(kept, SPREAD_FILE)
        return found[np.lexsort((found["way"], found["name"]))]


def _no_memory() -> MemoryError:
    return MemoryError("no memory for what differs between the ranks of files")


@dataclass(frozen=True)
class OfRanks:
    """summed: files of which all is known but what the rows of `kept` add."""

    summed: np.ndarray = field(default_factory=lambda: np.zeros(0, SPREAD_FILE))
    kept: np.ndarray = field(default_factory=lambda: np.zeros(0, SPREAD_ROW))

    @property
    def kept_rows(self) -> int:
        """How many rows of a rank and file, and of a file, are in memory."""
        return len(self.summed) + len(self.kept)

    def files(self, last_name: np.ndarray | None = None) -> np.ndarray:
        """A row (SPREAD_FILE) for each file and direction, in the order of both. last_name: of the
        names that were kept apart, where rows of several may be of one file: a row for each number.
        """
        if not len(self.kept):
            return self.summed
        rows, sums = self.kept.copy(), _Sums()
        if last_name is not None:
            rows["name"] = last_name[rows["name"]]
        sums.join(self.summed)
        sums.add(rows)
        return sums.files()


class SpreadOfRanks:
    """apart: names whose rows are kept until it is known which file they are of; loose: numbers of
    ranks whose rows are kept until all are there."""

    def __init__(self, apart: np.ndarray = _NO_NUMBERS, loose: np.ndarray = _NO_NUMBERS):
        self._apart, self._loose = apart, loose
        self._sums, self._kept = _Sums(), [np.zeros(0, SPREAD_ROW)]

    def add(self, columns: dict[str, np.ndarray]) -> None:
        """Rows of a rank, file and direction of one node; those of several processes of a rank are
        of one."""
        rows = np.empty(len(columns["name"]), SPREAD_ROW)
        for key in _FIGURES:
            rows[key] = columns[key]
        rows["counts"] = _RANKS | _INTERLEAVED
        is_apart = _is_one_of(rows["name"], self._apart)
        is_kept = is_apart | _is_one_of(rows["rank"], self._loose)
        if is_kept.any():
            self._kept.append(kept := rows[is_kept])
            kept["counts"][~is_apart[is_kept]] = _RANKS
            rows["counts"][is_kept] = _INTERLEAVED
            rows = rows[~is_apart]
        self._sums.add(rows)

    def found(self) -> OfRanks:
        """All of it."""
        return OfRanks(self._sums.files(), np.concatenate(self._kept))


def _is_one_of(numbers: np.ndarray, some: np.ndarray) -> np.ndarray:
    return np.isin(numbers, some) if len(some) else np.zeros(len(numbers), bool)
