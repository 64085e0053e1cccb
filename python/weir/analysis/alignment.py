# SPDX-License-Identifier: Apache-2.0
"""Clock offset and drift between nodes, from the barriers that their tasks left together.

Ranks leave a barrier at almost the same time, and whoever is late is late through no fault of the clock: the earliest
leaver of a node is the node's time. The median over the barriers of MPI_Init gives the offset, that over those of
MPI_Finalize the drift.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction

from weir.analysis.clock import Line
from weir.trace import TraceFile

SHORTEST_DRIFT_NS = 100_000_000  # two groups of barriers nearer than this cannot tell drift from noise
LARGEST_DRIFT = Fraction(1, 1000)  # of a clock; more is noise or damage

# (ranks, which world of that size, number of the barrier in its process) -> ns when the node's first task left it
Barriers = dict[tuple[int, int, int], int]


@dataclass(frozen=True)
class Alignment:
    """How far a node's clock was ahead of the reference node's. barriers 0: not aligned, real-time clocks are trusted."""

    node: str
    offset_ns: float
    drift: float
    barriers: int


def align(files: tuple[TraceFile, ...], lines: tuple[Line, ...]) -> tuple[tuple[Line, ...], tuple[Alignment, ...]]:
    """Lines that agree with the node of rank 0, reached directly or over nodes that share barriers with both."""
    if not files:
        return (), ()
    barriers = [_barriers(file, line) for file, line in zip(files, lines)]
    reference = next((i for i, file in enumerate(files) if any(p.rank == 0 for p in file.processes)), 0)
    made: dict[int, tuple[Line, Alignment]] = {reference: (lines[reference], Alignment(files[reference].node, 0.0, 0.0, 0))}
    frontier = [reference]
    while frontier:
        known = frontier.pop(0)
        for i in range(len(files)):
            if i not in made and (fit := _fit(barriers[i], barriers[known])) is not None:
                offset, drift, at, count = fit
                line = lines[i].corrected(offset, drift, at)
                made[i] = line, Alignment(files[i].node, float(offset), float(drift), count)
                barriers[i] = {key: _corrected(ns, offset, drift, at) for key, ns in barriers[i].items()}
                frontier.append(i)
    for i, file in enumerate(files):
        made.setdefault(i, (lines[i], Alignment(file.node, 0.0, 0.0, 0)))
    return tuple(made[i][0] for i in range(len(files))), tuple(made[i][1] for i in range(len(files)))


def _corrected(ns: int, offset: Fraction, drift: Fraction, at: int) -> int:
    return round(ns - offset - drift * (ns - at))


def _barriers(file: TraceFile, line: Line) -> Barriers:
    """A step may start several parallel programs: the n-th process of one rank belongs to the n-th world of that size."""
    syncs = file.array("syncs")
    seen: dict[tuple[int, int], list[int]] = defaultdict(list)
    left: Barriers = {}
    for process, index, ranks, ns in zip(
        syncs["process"].tolist(), syncs["index"].tolist(), syncs["ranks"].tolist(), line.instants(syncs["ticks"]).tolist()
    ):
        worlds = seen[ranks, file.processes[process].rank]
        if process not in worlds:
            worlds.append(process)
        key = (ranks, worlds.index(process), index)
        left[key] = min(ns, left.get(key, ns))
    return left


def _fit(ours: Barriers, theirs: Barriers) -> tuple[Fraction, Fraction, int, int] | None:
    """Offset at an instant of our clock, drift, that instant, barriers used; None when no barrier is shared."""
    shared = sorted((ours[key], ours[key] - theirs[key]) for key in ours.keys() & theirs.keys())
    if not shared:
        return None
    gaps = [(b[0] - a[0], i + 1) for i, (a, b) in enumerate(zip(shared, shared[1:]))]
    widest, cut = max(gaps, default=(0, 0))
    first, last = shared[:cut], shared[cut:]
    if widest < SHORTEST_DRIFT_NS or not first:
        return _median([d for _, d in shared]), Fraction(0), shared[0][0], len(shared)
    at, until = _median([t for t, _ in first]), _median([t for t, _ in last])
    offset = _median([d for _, d in first])
    drift = (_median([d for _, d in last]) - offset) / (until - at)
    if abs(drift) > LARGEST_DRIFT:
        drift = Fraction(0)
    return offset, drift, round(at), len(shared)


def _median(values: list[int]) -> Fraction:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return Fraction(ordered[middle]) if len(ordered) % 2 else Fraction(ordered[middle - 1] + ordered[middle], 2)
