# SPDX-License-Identifier: Apache-2.0
"""Medians with their ranges."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """Median, smallest and largest of some repetitions."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))


def ratio(above: float, below: float) -> float | None:
    """None where there is nothing to divide by."""
    return above / below if below else None
