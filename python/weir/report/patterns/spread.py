# SPDX-License-Identifier: Apache-2.0
"""What differs between the ranks of a file: how many they are, the fastest and the slowest, how far
their time and bytes lie apart, whose ranges of bytes interleave. Accumulated node by node, without
a row for each rank and file (native/reader/spread.cc).
"""

from __future__ import annotations

import ctypes as c
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from weir.trace._abi import SPREAD_FILE, SPREAD_ROW, pointer_to, spread_functions


class Sums:
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
        """In the order of names and directions."""
        found = handed_out(spread_functions()[3], self._handle, SPREAD_FILE)
        return found[np.lexsort((found["way"], found["name"]))]


def handed_out(get: Callable[..., int | None], handle: c.c_void_p, layout: np.dtype) -> np.ndarray:
    """A list of native/reader where it lies: its function `get` has the number of entries, too."""
    count = c.c_uint64()
    place = get(handle, c.byref(count))
    if not count.value:
        return np.zeros(0, layout)
    kept = (c.c_char * (count.value * layout.itemsize)).from_address(place)
    return np.frombuffer(kept, layout)


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
        rows, sums = self.kept.copy(), Sums()
        if last_name is not None:
            rows["name"] = last_name[rows["name"]]
        sums.join(self.summed)
        sums.add(rows)
        return sums.files()
