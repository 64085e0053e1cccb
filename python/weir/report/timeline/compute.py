# SPDX-License-Identifier: Apache-2.0
"""The steps of a run one behind the other on one axis of time, with what each rank did in each
slice of it.

Time between steps (a job waits in a queue, scripts copy files) is no part of the axis: each step
begins where the slice behind the step before it begins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from weir.analysis.step import StepData
from weir.analysis.tiles import MOST_BINS, NOWHERE, Grid, coarser, grid_over, tiles
from weir.trace._abi import TILE

MOST_ROWS = 512
MOST_TILES = 1 << 20


@dataclass(frozen=True)
class StepSpan:
    """A step that was recorded at level trace: the chosen members, and from when to when the axis
    shows it (ns since 1970)."""

    data: StepData
    members: np.ndarray
    first_ns: int
    last_ns: int

    @property
    def name(self) -> str:
        return self.data.step.name


@dataclass(frozen=True)
class Segment:
    """A step's place on the axis, in ns since its beginning."""

    step: str
    from_ns: int
    length_ns: int


@dataclass(frozen=True)
class Lane:
    """One row of the picture: ranks first_rank to last_rank (-1: processes without a rank)."""

    first_rank: int
    last_rank: int
    ranks: int = 1

    @property
    def label(self) -> str:
        if self.first_rank < 0:
            return "others"
        return str(self.first_rank) if self.first_rank == self.last_rank else (
            f"{self.first_rank}-{self.last_rank}"
        )


@dataclass(frozen=True)
class Timeline:
    """by_lane: tiles of shape (lanes, bins); by_group: (groups, bins). A slice lasts 2**shift ns,
    the axis length_ns."""

    shift: int
    length_ns: int
    segments: tuple[Segment, ...]
    lanes: tuple[Lane, ...]
    groups: tuple[str, ...]
    by_lane: np.ndarray
    by_group: np.ndarray

    @property
    def bins(self) -> int:
        return self.by_lane.shape[1]

    @property
    def bin_s(self) -> float:
        return (1 << self.shift) / 1e9

    def coarser(self) -> Timeline:
        """The same in slices twice as long. A slice that holds the seam of two steps holds a part
        of both."""
        return replace(self, shift=self.shift + 1, by_lane=coarser(self.by_lane),
            by_group=coarser(self.by_group))


def timeline(
    steps: list[StepSpan], groups: tuple[str, ...] = ("all files",),
    group_of: list[list[np.ndarray]] | None = None,
    *, all_names: bool = False, most_tiles: int = MOST_TILES, most_bins: int = 1 << 16,
) -> Timeline | None:  # fmt: skip
    """Tiles of all steps; None when there are none. group_of: for each step and file, the group of
    each name."""
    if not steps:
        return None
    lanes = _lanes(steps)
    most = max(64, min(most_bins, most_tiles // len(lanes), MOST_BINS))
    shift = _common_shift(steps, most)
    segments, by_lane, by_group, end_ns = [], [], [], 0
    for number, step in enumerate(steps):
        length = step.last_ns - step.first_ns
        grid = Grid(step.first_ns, shift, (length >> shift) + 1)
        made = tiles(
            step.data.files, step.data.lines, _rows_of(step, lanes), grid, rows=len(lanes),
            groups=len(groups),
            groups_of=group_of[number] if group_of is not None else None, all_names=all_names,
        )  # fmt: skip
        by_lane.append(made[0])
        by_group.append(made[1])
        segments.append(Segment(step.name, end_ns, length))
        end_ns += grid.bins << shift
    joined = (np.concatenate(parts, axis=1) for parts in (by_lane, by_group))
    return Timeline(shift, end_ns, tuple(segments), lanes, groups, *joined)


def _common_shift(steps: list[StepSpan], most: int) -> int:
    whole = sum(max(0, one.last_ns - one.first_ns) for one in steps)
    shift = grid_over(0, whole, most).shift
    while sum(((one.last_ns - one.first_ns) >> shift) + 1
            for one in steps) > most and len(steps) < most:
        shift += 1
    return shift


def _lanes(steps: list[StepSpan]) -> tuple[Lane, ...]:
    """A lane for each rank; neighbouring ranks share one where there are too many for a picture."""
    found = {m.rank for step in steps for m, is_chosen in zip(step.data.members, step.members)
        if is_chosen}
    ranks = sorted(found - {-1})
    together = -(-len(ranks) // MOST_ROWS) if ranks else 1
    neighbours = [ranks[i : i + together] for i in range(0, len(ranks), together)]
    lanes = [Lane(some[0], some[-1], len(some)) for some in neighbours]
    return tuple(lanes + [Lane(-1, -1)] * (-1 in found)) or (Lane(0, 0),)


def _rows_of(step: StepSpan, lanes: tuple[Lane, ...]) -> list[np.ndarray]:
    """The lane of each process of each file."""
    row = {rank: at for at, lane in enumerate(lanes)
        for rank in range(lane.first_rank, lane.last_rank + 1)}
    lane_of = np.array(
        [row.get(m.rank, NOWHERE) if is_chosen else NOWHERE
            for m, is_chosen in zip(step.data.members, step.members)], np.uint32
    )
    limits = np.cumsum([0, *(len(file.processes) for file in step.data.files)])
    return [lane_of[begin:end] for begin, end in zip(limits, limits[1:])]


def sums(made: np.ndarray) -> dict[str, np.ndarray]:
    """Totals over all slices: for each row, busy_ns and calls (reads, writes, other), bytes (reads,
    writes)."""
    return {name: made[name].sum(axis=1) for name in TILE.names}
