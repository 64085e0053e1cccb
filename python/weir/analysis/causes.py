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
    each strand's line is needed; `run` gets it there."""

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

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            causes_functions()[3](c.byref(self._handle))

    def _count(self, strand: int) -> int:
        count = c.c_uint64()
        causes_functions()[1](self._handle, strand, c.byref(count))
        return count.value

    def points(self, strand: int) -> np.ndarray:
        """Rising."""
        count = c.c_uint64()
        at = causes_functions()[1](self._handle, strand, c.byref(count))
        if not count.value:
            return np.empty(0, np.int64)
        buffer = (c.c_int64 * count.value).from_address(at)
        buffer.owner = self  # the points live as long as any array over them
        return np.frombuffer(buffer, np.int64)

    def run(self, lengths: Sequence[np.ndarray]) -> np.ndarray:
        """lengths: IO, CALLS, ALL_IO and ALL_CALLS (weir.analysis.lines) at the points of all
        strands, strand by strand. Returns a table (_abi.CAUSED) of what is asked."""
        kept = [np.ascontiguousarray(row, np.int64) for row in lengths]
        counts = [self._count(strand) for strand in range(self.strands)]
        if [*map(len, kept)] != [sum(counts)] * 4:
            raise ValueError("lengths of lines are not those at the points of all strands")
        first = np.cumsum([0, *counts], dtype=np.uint64)[:-1, None]
        pointers = np.array([*map(pointer_to, kept)], np.uint64) + first * np.uint64(8)
        asked = np.zeros(self.asked, CAUSED)
        if causes_functions()[2](self._handle, pointer_to(pointers), pointer_to(asked)):
            raise MemoryError("no memory for the waits of ranks")
        return asked
