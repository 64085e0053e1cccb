# SPDX-License-Identifier: Apache-2.0
"""Memory bandwidth of this node by number of cores: the triad of STREAM, a = b + s * c, counted as
there (24 bytes for each element; McCalpin, 1995)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from weir.probe.processes import of_processes

ARRAY_BYTES = 64 << 20  # of each of three arrays, all processes together: more than caches hold
LEAST_BYTES = 16 << 20  # the same of one process
PIECE = 8192  # elements whose product stays in the cache between the two passes of NumPy
BUDGET_S = 0.15
BYTES_OF_ELEMENT = 24


@dataclass(frozen=True)
class Memory:
    """bytes_per_s: of all processes together, one on each core."""

    cores: int
    bytes_per_s: float


def measure_memory() -> tuple[Memory, ...]:
    """With 1, 2, 4, ... of the cores that this process may run on, and with all."""
    return tuple(Memory(count, sum(of_processes(_triad, count, count))) for count in _counts())


def _counts() -> Iterator[int]:
    cores, count = len(os.sched_getaffinity(0)), 1
    while count < cores:
        yield count
        count *= 2
    yield cores


def _triad(number: int, count: int) -> float:
    size = max(ARRAY_BYTES // count, LEAST_BYTES) // 8 // PIECE * PIECE
    a, b, c = (np.full(size, float(value)) for value in range(3))
    product, rounds, begin = np.empty(PIECE), 0, time.perf_counter()
    while not rounds or time.perf_counter() - begin < BUDGET_S:
        for at in range(0, size, PIECE):
            np.multiply(c[at : at + PIECE], 3.0, out=product)
            np.add(b[at : at + PIECE], product, out=a[at : at + PIECE])
        rounds += 1
    assert a[-1] == 7.0  # 1 + 3 * 2: all of it was computed
    return rounds * size * BYTES_OF_ELEMENT / (time.perf_counter() - begin)
