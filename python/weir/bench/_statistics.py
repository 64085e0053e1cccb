# SPDX-License-Identifier: Apache-2.0
"""Medians with their ranges."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """Median, smallest and largest of some repetitions; values: each of them, in order."""

    median: float
    low: float
    high: float
    values: tuple[float, ...] = ()

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values), tuple(values))


def interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Where the median of all possible repetitions lies, by order statistics, whatever their
    distribution (H. A. David, Order Statistics, 7.1). Fewer than six values do not reach 95 %:
    theirs is from the smallest to the largest, which is 75 % of three and 94 % of five."""
    ordered, count = sorted(values), len(values)
    left_out, tail = 0, 0.0
    while left_out < (count - 1) // 2:
        tail += math.comb(count, left_out) / 2**count
        if 2 * (tail + math.comb(count, left_out + 1) / 2**count) > 1 - confidence:
            break
        left_out += 1
    return ordered[left_out], ordered[count - 1 - left_out]


def ratio(above: float, below: float) -> float | None:
    """None where there is nothing to divide by."""
    return above / below if below else None
