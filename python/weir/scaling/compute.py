# SPDX-License-Identifier: Apache-2.0
"""Several runs of one program on different numbers of ranks: speed-up, efficiency, where the curve
halts and which part of the program halts it.

As in the OLAM study: runs with several ranks on a node and runs with one rank on each node are two
curves from one beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# of what more ranks could gain at best: a curve that gains less has stopped scaling
STOP_GAIN = 0.25


@dataclass(frozen=True)
class RunTimes:
    """One run. parts_ns: wall time by phase (or step), in order; critical_ns: of I/O, None where
    MPI was not recorded; is_complete: its trace is whole; notes: what must be known of it, where it
    is not or the program failed."""

    name: str
    ranks: int
    nodes: int
    wall_ns: int
    parts_ns: dict[str, int]
    critical_ns: int | None = None
    is_complete: bool = True
    notes: tuple[str, ...] = ()

    @property
    def is_one_per_node(self) -> bool:
        return self.ranks == self.nodes


@dataclass(frozen=True)
class Point:
    """A run on a curve. speedup: of the reference's wall time; efficiency: speed-up per rank, 1 at
    the reference."""

    run: RunTimes
    speedup: float
    efficiency: float


@dataclass(frozen=True)
class Loss:
    """A part of the program from one run to the next larger one. lost_ns: more than its share of
    the ranks would let it take."""

    part: str
    before_ns: int
    after_ns: int
    lost_ns: int


@dataclass(frozen=True)
class Stop:
    """From `before` to `after` the curve gains `gain` of what it could at best. losses: those of
    all parts, greatest first."""

    before: RunTimes
    after: RunTimes
    gain: float
    losses: tuple[Loss, ...]


@dataclass(frozen=True)
class Curve:
    """Runs by rising number of ranks. stop: None when the curve goes on. placement: `one rank per
    node`, `several ranks per node` or, when all runs are of one kind, empty."""

    placement: str
    points: tuple[Point, ...]
    stop: Stop | None


@dataclass(frozen=True)
class Crowding:
    """The same number of ranks, one on each node and several on a node: which parts take longer
    among neighbours."""

    apart: RunTimes
    together: RunTimes
    losses: tuple[Loss, ...]


@dataclass(frozen=True)
class Scaling:
    """runs: all that were given, also those that are on no curve because another one of as many
    ranks was shorter."""

    runs: tuple[RunTimes, ...]
    reference: RunTimes
    parts: tuple[str, ...]
    curves: tuple[Curve, ...]
    crowding: tuple[Crowding, ...]

    @property
    def is_complete(self) -> bool:
        return all(run.is_complete for run in self.runs)


def scaling(runs: Sequence[RunTimes], stop_gain: float = STOP_GAIN) -> Scaling:
    """Of at least two runs; those of as many ranks and nodes count with the shortest. The reference
    is the one with the fewest ranks.

    Raises ValueError when there is nothing to compare.
    """
    best: dict[tuple[int, int], RunTimes] = {}
    for run in runs:
        other = best.get((run.ranks, run.nodes))
        if other is None or run.wall_ns < other.wall_ns:
            best[run.ranks, run.nodes] = run
    kept = sorted(best.values(), key=lambda run: (run.ranks, -run.nodes))
    if len(kept) < 2:
        raise ValueError("speed-up needs runs on at least two numbers of ranks or nodes")
    reference = kept[0]
    common = [part for part in reference.parts_ns if all(part in run.parts_ns for run in kept)]
    apart = [run for run in kept if run.is_one_per_node]
    together = [run for run in kept if not run.is_one_per_node]
    if apart and together and len(apart) > 1:
        begin = [reference] if reference.ranks == 1 else []
        groups = [("one rank per node", apart), ("several ranks per node", [*begin, *together])]
    else:
        groups = [("", kept)]
    curves = tuple(_curve(placement, group, reference, common, stop_gain)
        for placement, group in groups)
    return Scaling(tuple(runs), reference, tuple(common), curves,
        tuple(_crowding(apart, together, common)))


def _curve(placement: str, runs: list[RunTimes], reference: RunTimes, parts: list[str],
        stop_gain: float) -> Curve:
    points = []
    for run in runs:
        speedup = reference.wall_ns / run.wall_ns if run.wall_ns else 0.0
        points.append(Point(run, speedup, speedup * reference.ranks / run.ranks))
    return Curve(placement, tuple(points), _stop(runs, parts, stop_gain))


def _stop(runs: list[RunTimes], parts: list[str], stop_gain: float) -> Stop | None:
    """The first step of the curve that gains too little."""
    for before, after in zip(runs, runs[1:]):
        if after.ranks == before.ranks or not after.wall_ns:
            continue
        gain = (before.wall_ns / after.wall_ns - 1) / (after.ranks / before.ranks - 1)
        if gain < stop_gain:
            return Stop(before, after, gain, _losses(before, after, before.ranks / after.ranks,
                parts))
    return None


def _losses(before: RunTimes, after: RunTimes, share: float, parts: list[str]) -> tuple[Loss, ...]:
    made = [
        Loss(part, before.parts_ns[part], after.parts_ns[part],
            round(after.parts_ns[part] - share * before.parts_ns[part])) for part in parts
    ]
    return tuple(sorted(made, key=lambda loss: -loss.lost_ns))


def _crowding(apart: list[RunTimes], together: list[RunTimes], parts: list[str]) -> list[Crowding]:
    made = []
    for one in apart:
        made += [Crowding(one, other, _losses(one, other, 1.0, parts)) for other in together
            if other.ranks == one.ranks]
    return made
