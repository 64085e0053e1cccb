# SPDX-License-Identifier: Apache-2.0
"""Functions of time made of the intervals of one rank: how long it was in I/O, and what a second of
its I/O costs others.

All are cumulative arrays that are asked at many timestamps at once; timestamps are ns, int64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np


class Lengths(Protocol):
    """Of a Union, or of as much of it as is known (busy.py)."""

    def until(self, timestamps: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True)
class Union:
    """The union of intervals as disjoint blocks, rising."""

    begins: np.ndarray
    ends: np.ndarray
    before: np.ndarray  # length of all blocks before each

    @staticmethod
    def of(starts: np.ndarray, ends: np.ndarray) -> Union:
        """Of intervals in any order."""
        if not len(starts):
            nothing = np.empty(0, np.int64)
            return Union(nothing, nothing, nothing)
        order = np.argsort(starts, kind="stable")  # nearly sorted as it comes
        starts, reach = starts[order], np.maximum.accumulate(ends[order])
        first = np.flatnonzero(np.r_[True, starts[1:] > reach[:-1]])
        return Union._of_blocks(starts[first], reach[np.r_[first[1:] - 1, len(reach) - 1]])

    @staticmethod
    def _of_blocks(begins: np.ndarray, ends: np.ndarray) -> Union:
        return Union(begins, ends, np.cumsum(ends - begins) - (ends - begins))

    def cut(self, timestamp: int) -> tuple[Union, Union]:
        """What lies before the timestamp, and behind it."""
        before, behind = self.begins < timestamp, self.ends > timestamp
        return (
            Union._of_blocks(self.begins[before], np.minimum(self.ends[before], timestamp)),
            Union._of_blocks(np.maximum(self.begins[behind], timestamp), self.ends[behind]),
        )

    def until(self, timestamps: np.ndarray) -> np.ndarray:
        """Length of the union up to each timestamp."""
        if not len(self.begins):
            return np.zeros(len(timestamps), np.int64)
        at = np.searchsorted(self.begins, timestamps, "right") - 1
        inside = np.minimum(timestamps, self.ends[at]) - self.begins[at]
        return np.where(at < 0, 0, self.before[at] + inside)

    def within(self, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Length of the union within each window."""
        return self.until(ends) - self.until(begins)


@dataclass(frozen=True)
class Price:
    """What a second in I/O costs from each edge to the next; outside of the edges it costs nothing.
    """

    edges: np.ndarray
    values: np.ndarray  # one less than edges

    @staticmethod
    def nothing() -> Price:
        return Price(np.empty(0, np.int64), np.empty(0, np.float64))

    @staticmethod
    def added(begins: np.ndarray, ends: np.ndarray) -> Price:
        """1 for each window that a timestamp lies in."""
        if not len(begins):
            return Price.nothing()
        timestamps = np.r_[begins, ends]
        edges, at = np.unique(timestamps, return_inverse=True)
        change = np.bincount(at, np.r_[np.ones(len(begins)), -np.ones(len(ends))], len(edges))
        return Price(edges, np.cumsum(change)[:-1])

    @staticmethod
    def of_windows(begins: np.ndarray, ends: np.ndarray, values: np.ndarray) -> Price:
        """Of disjoint windows, rising; what overlaps all the same belongs to the earlier one."""
        begins = np.maximum(begins, np.r_[begins[:1], np.maximum.accumulate(ends)[:-1]])
        kept = begins < ends
        begins, ends, values = begins[kept], ends[kept], values[kept]
        if not len(begins):
            return Price.nothing()
        edges = np.stack([begins, ends], 1).ravel()
        every = np.stack([values, np.zeros(len(values))], 1).ravel()[:-1]
        return Price(edges, every)

    def at(self, timestamps: np.ndarray) -> np.ndarray:
        """The price from each timestamp on."""
        at = np.searchsorted(self.edges, timestamps, "right") - 1
        return np.where((at >= 0) & (at < len(self.values)), np.r_[self.values, 0.0][at], 0.0)

    def cost(self, union: Lengths) -> Cost:
        """Of the seconds of a rank in I/O."""
        lengths = np.diff(union.until(self.edges)).astype(np.float64)
        return Cost(self, union, np.r_[0.0, np.cumsum(lengths * self.values)])


@dataclass(frozen=True)
class Cost:
    """A price times the I/O of a rank, added up over time."""

    price: Price
    union: Lengths
    sums: np.ndarray  # at each edge

    @property
    def total_ns(self) -> float:
        return float(self.sums[-1])

    def until(self, timestamps: np.ndarray) -> np.ndarray:
        """Up to each timestamp."""
        edges = self.price.edges
        if len(edges) < 2:
            return np.zeros(len(timestamps))
        at = np.searchsorted(edges, timestamps, "right") - 1
        low = np.clip(at, 0, len(edges) - 2)
        since = self.union.until(timestamps) - self.union.until(edges)[low]
        return np.where(at < 0, 0.0, np.where(at >= len(edges) - 1, self.sums[-1],
            self.sums[low] + self.price.values[low] * since))
