# SPDX-License-Identifier: Apache-2.0
"""The most common sizes and strides of each file, counted over trace files in bounded memory.

As long as there are few different values all are kept, and counts are exact. When there are more
than MOST_VALUES, only the most common ones of each file are: a value that is rare on each of many
nodes may then be missed, or counted from where it was first seen among them.
"""

from __future__ import annotations

import ctypes as c
from dataclasses import dataclass

import numpy as np

from weir.trace._abi import LAYOUTS, CommonLimits, commons_functions, pointer_to

MOST_VALUES = 1 << 19
KEPT = (16, 4)  # of each file, direction and kind, when there are too many; the table shows four
_FOLDED_AT_ONCE = 1 << 18
_BACKWARD = 4  # the first kind that is; kinds of writes are odd, those of strides 2 and more


@dataclass(frozen=True)
class OfWay:
    """Of one trace file, the rows (LAYOUTS["commons"]) of one direction among all. name, row: of
    each access the number of its name, and its place among the rows of this direction."""

    rows: np.ndarray
    way: int
    name: np.ndarray
    row: np.ndarray

    def by_row(self) -> np.ndarray:
        """Rows of (place, kind, value, count); kind 1: strides, those below 0 backward."""
        of = self.rows[self.rows["kind"] % 2 == self.way]
        value = of["value"].astype(np.int64) * np.where(of["kind"] >= _BACKWARD, -1, 1)
        columns = self.row[of["file"]], of["kind"] >= 2, value, of["count"].astype(np.int64)
        return np.column_stack(columns)  # unsigned among them would make them floating-point


class CommonValues:
    """Rows of (key of a file and direction, kind, value, count), added up by native/reader.

    key: of a file's name and a direction, name << 1 | way."""

    def __init__(self) -> None:
        limits = CommonLimits(MOST_VALUES, _FOLDED_AT_ONCE, KEPT)
        self._handle = c.c_void_p(commons_functions()[0](c.byref(limits)))
        if not self._handle:
            raise _no_memory()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            commons_functions()[4](c.byref(self._handle))

    @property
    def is_full(self) -> bool:
        """Whether rare values were left out."""
        return bool(commons_functions()[2](self._handle))

    def add(self, values: OfWay) -> None:
        rows = np.ascontiguousarray(values.rows, LAYOUTS["commons"])
        names = np.ascontiguousarray(values.name, np.int32)
        if commons_functions()[1](
            self._handle, pointer_to(rows), len(rows), pointer_to(names), values.way
        ):
            raise _no_memory()

    def values(self) -> np.ndarray:
        """All that were kept, each once."""
        count = c.c_uint64()
        place = commons_functions()[3](self._handle, c.byref(count))
        if not place:
            raise _no_memory()
        kept = (c.c_int64 * (4 * count.value)).from_address(place)
        return np.frombuffer(kept, np.int64).reshape(-1, 4).copy()


def _no_memory() -> MemoryError:
    return MemoryError("no memory for the common sizes and strides of files")
