# SPDX-License-Identifier: Apache-2.0
"""The most common sizes and strides of each file, counted over trace files in bounded memory.

As long as there are few different values all are kept, and counts are exact. When there are more
than MOST_VALUES, only the most common ones of each file are: a value that is rare on each of many
nodes may then be missed, or counted from where it was first seen among them.
"""

from __future__ import annotations

import numpy as np

from weir.analysis.columns import starts

MOST_VALUES = 1 << 19
KEPT = (16, 4)  # of each file, direction and kind, when there are too many; the table shows four
_FOLDED_AT_ONCE = 1 << 18
_PRIMES = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)


class CommonValues:
    """Rows of (key of a file and direction, kind, value, count)."""

    def __init__(self) -> None:
        self._parts: list[np.ndarray] = []
        self._waiting = self._folded = 0
        self.is_full = False

    def add(self, values: np.ndarray) -> None:
        self._parts.append(values)
        self._waiting += len(values)
        if self._waiting > max(_FOLDED_AT_ONCE, self._folded):
            self._fold()

    def values(self) -> np.ndarray:
        """All that were kept, each once."""
        self._fold()
        return self._parts[0]

    def _fold(self) -> None:
        every = np.concatenate([np.zeros((0, 4), np.int64), *self._parts])
        self._parts = []
        every = _added(every) if len(every) else every
        for most in KEPT:
            if len(every) > MOST_VALUES:
                self.is_full = True
                every = _most_common(every, most)
        self._parts, self._folded, self._waiting = [every], len(every), 0


def _added(every: np.ndarray) -> np.ndarray:
    """Counts of equal values added up."""
    words = every[:, :3].view(np.uint64)
    mixed = words[:, 0] * _PRIMES[0]
    for column in (1, 2):
        mixed = (mixed ^ (mixed >> np.uint64(29)) ^ words[:, column]) * _PRIMES[column]
    order = np.argsort(mixed)
    begins = starts(mixed[order])
    whole = starts(mixed[order], *(every[order, column] for column in range(3)))
    if len(whole) != len(begins):  # two values of one hash
        order = np.lexsort(every[:, 2::-1].T)
        begins = starts(*every[order, :3].T)
    made = every[order[begins]]
    made[:, 3] = np.add.reduceat(every[order, 3], begins)
    return made


def _most_common(every: np.ndarray, most: int) -> np.ndarray:
    """Of each key and kind: by count, then the larger values first."""
    order = np.lexsort((-every[:, 2], -every[:, 3], every[:, 0] << 1 | every[:, 1]))
    begins = starts(every[order, 0], every[order, 1])
    nth = np.arange(len(order)) - np.repeat(begins, np.diff(np.r_[begins, len(order)]))
    return every[order[nth < most]]
