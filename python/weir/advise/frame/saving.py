# SPDX-License-Identifier: Apache-2.0
"""What a cure would save, as ranges of seconds."""

from __future__ import annotations

import math
from dataclasses import dataclass

# By which I/O times of two runs of a program differ on a shared machine (bench/estimates.py).
SPREAD = 0.15


@dataclass(frozen=True)
class Range:
    """Seconds, the least and the most that is expected."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high)

    def times(self, factor: float) -> Range:
        return Range(self.low * factor, self.high * factor)

    def at_most(self, limit: float) -> Range:
        return Range(min(self.low, limit), min(self.high, limit))

    def contains(self, value: float) -> bool:
        return self.low <= value <= self.high


NOTHING = Range(0.0, 0.0)


@dataclass(frozen=True)
class Saving:
    """Seconds. io: of all ranks, added up; active: in which at least one rank is in I/O, None where
    it is not known; critical: by which the run becomes shorter, None where it is not known.
    requests: fewer reads, writes and metadata calls at the file system, about."""

    io: Range
    active: Range | None
    critical: Range | None
    requests: int = 0

    @property
    def worth(self) -> float:
        """What findings are ranked by: seconds of the run, as far as they are known."""
        return (self.critical or self.active or self.io).middle


def saved(before_s: float, after: Range, outlier_s: float = 0.0) -> Range:
    """Of what takes so long before and after, each by which another run may differ: never less than
    nothing. outlier_s: of the longest of the calls what is more than their mean; a single call of
    that length may be chance, and the lower end is without it. The upper end may be more than
    before_s; all I/O on the file is its limit (Facts.saving)."""
    low, high = before_s - outlier_s - after.high, before_s - after.low
    return Range(max(0.0, (1 - SPREAD) * low), max(0.0, (1 + SPREAD) * high))


def request_count(size: float, block: int) -> int:
    """Requests of a layer with blocks of so many bytes."""
    return max(1, math.ceil(size / block))
