# SPDX-License-Identifier: Apache-2.0
"""Clock offset and drift between nodes, from the barriers that their ranks left together.

Ranks leave a barrier at almost the same time, and whoever is late is late through no fault of the
clock: the earliest leaver of a node is the node's time, the median over the barriers its offset.
Barriers follow one another at once, so no rank leaves barrier k + 1 before every rank has left
barrier k: this bounds the offset from both sides, and says how wrong it can be (as in Cristian,
Probabilistic clock synchronization, 1989). When no single offset fits the barriers of MPI_Init and
those of MPI_Finalize, the difference is drift.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from weir.analysis.clock import Line
from weir.analysis.columns import grouped
from weir.analysis.worlds import Worlds
from weir.trace import TraceFile

APART_NS = 100_000_000  # between the barriers of MPI_Init and those of MPI_Finalize, at least
LARGEST_DRIFT = Fraction(1, 1000)  # of a clock; more is noise or damage

# (world, number of the barrier in its process) -> ns when the node's first and last rank left it
Key = tuple[int, int]
Barriers = dict[Key, tuple[int, int]]


@dataclass(frozen=True)
class Alignment:
    """How far a node's clock was ahead of the reference node's, and how wrong that can be at most.

    barriers 0: the reference itself, or a node that shares no barrier: its real-time clock is
    trusted.
    """

    node: str
    offset_ns: float
    drift: float
    barriers: int
    error_ns: float | None = None


@dataclass(frozen=True)
class _Fit:
    """Our clock less theirs: `offset` at `at` on our clock, growing by `drift`; between `low` and
    `high` for certain."""

    at: int
    offset: Fraction
    drift: Fraction
    low: int | None
    high: int | None

    def corrected(self, ns: int) -> int:
        return round(ns - self.offset - self.drift * (ns - self.at))

    @property
    def error_ns(self) -> float | None:
        if self.low is None or self.high is None:
            return None
        return float(max(self.high - self.offset, self.offset - self.low))


def align(files: tuple[TraceFile, ...], lines: tuple[Line, ...], worlds: Worlds
        ) -> tuple[tuple[Line, ...], tuple[Alignment, ...]]:
    """Lines that agree with the node of rank 0, reached directly or over nodes that share barriers
    with both."""
    if not files:
        return (), ()
    barriers = [_barriers(*one) for one in zip(files, lines, worlds.of)]
    reference = next((i for i, file in enumerate(files)
        if any(p.rank == 0 for p in file.processes)), 0)
    made: dict[int, tuple[Line, Alignment]] = {reference: (lines[reference],
        Alignment(files[reference].node, 0.0, 0.0, 0))}
    frontier, waiting = [reference], [i for i in range(len(files)) if i != reference]
    while frontier and waiting:
        known = frontier.pop(0)
        for i in list(waiting):
            shared = sorted(barriers[i].keys() & barriers[known].keys())
            if not shared:
                continue
            waiting.remove(i)
            fit = _fit(barriers[i], barriers[known], shared)
            line = lines[i].corrected(fit.offset, fit.drift, fit.at)
            found = Alignment(files[i].node, float(fit.offset), float(fit.drift), len(shared),
                fit.error_ns)
            made[i] = line, found
            barriers[i] = {key: (fit.corrected(a), fit.corrected(b))
                for key, (a, b) in barriers[i].items()}
            frontier.append(i)
    for i, file in enumerate(files):
        made.setdefault(i, (lines[i], Alignment(file.node, 0.0, 0.0, 0)))
    return tuple(made[i][0] for i in range(len(files))), tuple(made[i][1]
        for i in range(len(files)))


def _barriers(file: TraceFile, line: Line, worlds: tuple[int, ...]) -> Barriers:
    """worlds: of each process."""
    syncs = file.array("syncs")
    if not len(syncs):
        return {}
    world = np.array(worlds, np.int64)[syncs["process"]]
    order, begins = grouped(world, syncs["index"])
    ns = line.timestamps(syncs["ticks"])[order]
    first, last = np.minimum.reduceat(ns, begins), np.maximum.reduceat(ns, begins)
    keys = zip(world[order[begins]].tolist(), syncs["index"][order[begins]].tolist())
    return dict(zip(keys, zip(first.tolist(), last.tolist())))


def _fit(ours: Barriers, theirs: Barriers, shared: list[Key]) -> _Fit:
    """Offset and drift from the barriers that both nodes left."""
    shared = sorted(shared, key=lambda key: ours[key][0])
    gaps = [(ours[b][0] - ours[a][0], i + 1) for i, (a, b) in enumerate(zip(shared, shared[1:]))]
    widest, cut = max(gaps, default=(0, 0))
    if widest < APART_NS:
        return _offset(ours, theirs, [shared])
    groups = [shared[:cut], shared[cut:]]
    both = _offset(ours, theirs, groups)
    if both.low is not None and both.high is not None and both.low <= both.high:
        return both
    first, last = (_offset(ours, theirs, [group]) for group in groups)
    drift = (last.offset - first.offset) / (last.at - first.at)
    if abs(drift) > LARGEST_DRIFT:
        return first
    return _Fit(first.at, first.offset, drift, first.low, first.high)


def _offset(ours: Barriers, theirs: Barriers, groups: list[list[Key]]) -> _Fit:
    """One offset for all these barriers: the median, within the bounds that the barriers of each
    group set."""
    keys = [key for group in groups for key in group]
    offset = _median([ours[key][0] - theirs[key][0] for key in keys])
    lows, highs = [], []
    for group in groups:
        for key in group:
            after = (key[0], key[1] + 1)
            if after in group:
                lows.append(ours[key][1] - theirs[after][0])
                highs.append(ours[after][0] - theirs[key][1])
    low, high = max(lows, default=None), min(highs, default=None)
    if low is not None and high is not None and low <= high:
        offset = min(max(offset, Fraction(low)), Fraction(high))
    at = round(_median([ours[key][0] for key in keys]))
    return _Fit(at, offset, Fraction(0), low, high)


def _median(values: list[int]) -> Fraction:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return Fraction(ordered[middle]) if len(ordered) % 2 else Fraction(ordered[middle - 1]
        + ordered[middle], 2)
