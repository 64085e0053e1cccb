# SPDX-License-Identifier: Apache-2.0
"""From ticks of a node's trace clock to ns since 1970, in fixed point: the same integers here and
in native/reader/clock.h."""

from __future__ import annotations

import ctypes as c
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from weir.trace import Problem, TraceFile
from weir.trace._abi import Clock, library

SHIFT = 48
MONOTONIC = 2
# readings of both clocks nearer than this say less than the header's own estimate
SHORTEST_LINE_NS = 1_000_000
LARGEST_MISFIT = 0.01  # of the slope between pairs and header: more is damage, not drift
# ns per tick that a clock can have, and that 128 bits can carry
_SLOPES = (Fraction(1, 64), Fraction(16))


MOST_NS = 2**62
_FAR = 2**56  # ticks whose timestamps are far below it


def _bounded(ns: int) -> int:
    return max(-MOST_NS, min(ns, MOST_NS))


@dataclass(frozen=True)
class Line:
    """ns = base_ns + ((ticks - origin_ticks) * multiplier >> 48), rounded down."""

    origin_ticks: int
    base_ns: int
    multiplier: int

    def timestamp(self, ticks: int) -> int:
        """ns since 1970; of ticks that no run can have (a damaged trace) at most 2^62."""
        return _bounded(self.base_ns + ((ticks - self.origin_ticks) * self.multiplier >> SHIFT))

    def length(self, ticks: int) -> int:
        return _bounded(ticks * self.multiplier >> SHIFT)

    def timestamps(self, ticks: np.ndarray) -> np.ndarray:
        """ns since 1970 of an array of ticks, int64."""
        return self._convert("weir_reader_timestamps", ticks, np.int64)

    def bounded(self, ticks: np.ndarray) -> np.ndarray:
        """timestamp() of each, int64: of ticks that no run can have, too."""
        is_usual = self.origin_ticks < _FAR and abs(self.base_ns) < MOST_NS // 2
        if is_usual and (ticks < _FAR).all():
            return self.timestamps(ticks)
        return np.array([self.timestamp(one) for one in ticks.tolist()], np.int64)

    def lengths(self, ticks: np.ndarray) -> np.ndarray:
        """ns of an array of lengths in ticks, int64; lengths that no run can have stop at 2^62."""
        made = self._convert("weir_reader_lengths", ticks, np.uint64)
        return np.minimum(made, np.uint64(MOST_NS)).astype(np.int64)

    def _convert(self, function: str, ticks: np.ndarray, kind: type) -> np.ndarray:
        ticks = np.ascontiguousarray(ticks, np.uint64)
        out = np.empty(len(ticks), kind)
        getattr(library(), function)(c.byref(self.native()), ticks.ctypes.data, len(ticks),
            out.ctypes.data)
        return out

    def native(self) -> Clock:
        return Clock(self.origin_ticks, self.base_ns, self.multiplier)

    def corrected(self, offset_ns: Fraction, drift: Fraction, at_ns: int) -> Line:
        """This line less a difference that is offset_ns at at_ns and grows by `drift` ns a ns."""
        base = self.base_ns - offset_ns - drift * (self.base_ns - at_ns)
        return Line(self.origin_ticks, math.floor(base), round(self.multiplier * (1 - drift)))


def node_line(file: TraceFile) -> tuple[Line, Problem | None]:
    """The line of a node through the readings of both clocks that lie furthest apart, and what was
    wrong with them."""
    head = file.header
    origin, base = head.created_ticks, head.created_realtime_ns
    if base >= 2**62:
        return node_line_of(Fraction(1), origin, 0), Problem(file.path, 40,
            "the time of making is impossible")
    if head.clock == MONOTONIC:
        return node_line_of(Fraction(1), origin, base), None
    estimate = _fraction(head.ns_per_tick)
    pairs = sorted(_pairs(file))
    span_ticks, span_ns = pairs[-1][0] - pairs[0][0], pairs[-1][1] - pairs[0][1]
    slope = Fraction(span_ns,
        span_ticks) if span_ticks > 0 and span_ns >= SHORTEST_LINE_NS else None
    if estimate is None and (slope is None or not _SLOPES[0] <= slope <= _SLOPES[1]):
        return node_line_of(Fraction(1), origin, base), Problem(file.path, 64,
            "the length of a tick is not known: ticks are shown as ns")
    if slope is None:
        return node_line_of(estimate, origin, base), None
    if estimate is not None and abs(slope / estimate - 1) > LARGEST_MISFIT:
        reason = (
            f"the processes' clocks ran at {float(slope):.6g} ns a tick, the trace's header says "
            f"{float(estimate):.6g}; the header's is used for all times"
        )
        return node_line_of(estimate, origin, base), Problem(file.path, 64, reason)
    return node_line_of(slope, origin, base), None


def node_line_of(slope: Fraction, origin_ticks: int, base_ns: int) -> Line:
    return Line(origin_ticks, base_ns, round(slope * 2**SHIFT))


def _fraction(value: float) -> Fraction | None:
    if not math.isfinite(value):
        return None
    made = Fraction(value)
    return made if _SLOPES[0] <= made <= _SLOPES[1] else None


def _pairs(file: TraceFile) -> Iterator[tuple[int, int]]:
    yield file.header.created_ticks, file.header.created_mono_ns
    for process in file.processes:
        if process.whole and process.start_ticks:
            yield process.start_ticks, process.start_mono_ns
        if process.whole and process.last_ticks:
            yield process.last_ticks, process.last_mono_ns
