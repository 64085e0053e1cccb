# SPDX-License-Identifier: Apache-2.0
"""What ranks that were waited for did meanwhile, over as many ranks as it takes:
native/reader/causes.cc over arrays."""

from __future__ import annotations

import ctypes as c
from collections.abc import Sequence

import numpy as np

from weir.trace._abi import CAUSED, Stays, causes_functions, pointer_to


class Causes:
    """Waits of strands, apart and rising within each. First `points` names the timestamps at which
    each strand's line is needed; `give` gets it there, and then `run` finds what was asked."""

    def __init__(
        self, strands: int, waits: tuple[np.ndarray, ...], asked: tuple[np.ndarray, np.ndarray]
    ):
        """waits: strand, awaited strand, begin, end. asked: strands at timestamps."""
        kinds = np.uint32, np.uint32, np.int64, np.int64
        self._kept = [np.ascontiguousarray(one, kind) for one, kind in zip(waits, kinds)]
        self._kept += [
            np.ascontiguousarray(one, kind) for one, kind in zip(asked, (np.uint32, np.int64))
        ]
        self.strands, self.asked = strands, len(asked[0])
        self._stays = Stays(strands, len(waits[0]), self.asked, *map(pointer_to, self._kept))
        self._handle = c.c_void_p(causes_functions()[0](c.byref(self._stays)))
        if not self._handle:
            raise MemoryError("no memory for the waits of ranks")
        place = c.c_void_p()
        at = causes_functions()[1](self._handle, c.byref(place))
        # the place of each strand's first point among those of all, and how many there are
        self.first = _seen(place.value, np.uint64, strands + 1).astype(np.int64)
        self._points = _seen(at, np.int64, int(self.first[-1]))

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            causes_functions()[4](c.byref(self._handle))

    def points(self, low: int, high: int | None = None) -> np.ndarray:
        """Of a strand, or of strands from `low` to before `high`, strand by strand: rising within
        each. Not copied: as long as this object is there."""
        end = low + 1 if high is None else high
        return self._points[self.first[low] : self.first[end]]

    def give(self, low: int, high: int, lengths: Sequence[np.ndarray]) -> None:
        """lengths: IO, CALLS, ALL_IO and ALL_CALLS (weir.analysis.lines) at the points of the
        strands from `low` to before `high`, strand by strand. Of all strands before run()."""
        kept = [np.ascontiguousarray(row, np.int64) for row in lengths]
        if [*map(len, kept)] != [self.first[high] - self.first[low]] * 4:
            raise ValueError("lengths of lines are not those at the points of their strands")
        pointers = (c.c_void_p * 4)(*map(pointer_to, kept))
        if causes_functions()[2](self._handle, low, high, pointers):
            raise MemoryError("no memory for the waits of ranks")

    def run(self) -> np.ndarray:
        """A table (_abi.CAUSED) of what is asked."""
        asked = np.zeros(self.asked, CAUSED)
        if causes_functions()[3](self._handle, pointer_to(asked)):
            raise MemoryError("no memory for the waits of ranks")
        return asked


def _seen(at: int | None, kind: type, count: int) -> np.ndarray:
    """A list of the library, which goes with its owner."""
    if not count:
        return np.empty(0, kind)
    return np.frombuffer((c.c_char * (count * np.dtype(kind).itemsize)).from_address(at), kind)
