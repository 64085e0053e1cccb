# SPDX-License-Identifier: Apache-2.0
"""The steps of a run one behind the other on one axis of time, with what each rank did in each
slice of it.

Time between steps (a job waits in a queue, scripts copy files) is no part of the axis: each step
begins where the slice behind the step before it begins.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from weir.analysis.ranks import NO_RANK, RankNames, in_order, rank_list
from weir.analysis.step import StepData
from weir.analysis.tiles import MOST_BINS, NOWHERE, Grid, coarser, grid_over, tiles
from weir.trace._abi import TILE

MOST_ROWS = 512
MOST_CELLS = 4 * MOST_ROWS  # of lanes and nodes
MOST_TILES = 1 << 20


@dataclass(frozen=True)
class StepSpan:
    """A step that was recorded at level trace: the chosen members, and from when to when the axis
    shows it (ns since 1970)."""

    data: StepData
    members: np.ndarray
    first_ns: int
    last_ns: int
    ranks: RankNames

    @property
    def name(self) -> str:
        return self.data.step.name

    @cached_property
    def places(self) -> list[tuple[int, str] | None]:
        """Of each member the number of its lane and its node; None: it is not chosen. Processes
        without a rank share a lane beside ranks."""
        nodes, has_ranks = [file.node for file in self.data.files], bool(self.data.worlds)
        return [
            (NO_RANK if has_ranks and m.number < 0 else m.number, nodes[m.file])
            if is_chosen else None
            for m, is_chosen in zip(self.data.members, self.members.tolist())
        ]


@dataclass(frozen=True)
class Segment:
    """A step's place on the axis, in ns since its beginning."""

    step: str
    from_ns: int
    length_ns: int


@dataclass(frozen=True)
class Lane:
    """One row of the picture: ranks by their numbers (weir.analysis.ranks), or the programs of
    steps without ranks; NO_RANK: all processes without a rank beside ranks. label: short, ranks
    that lie apart are named by the first of them."""

    of: tuple[int, ...]
    label: str

    @property
    def ranks(self) -> int:
        return len(self.of)

    @staticmethod
    def named(of: tuple[int, ...], names: RankNames) -> Lane:
        if of[0] == NO_RANK:
            return Lane(of, "others")
        every = rank_list(names[one] for one in of)
        return Lane(of, f"{names[of[0]].label}, ..." if "," in every else every)


@dataclass(frozen=True)
class Place:
    """Nodes of one row of the picture by node, and how many ranks they have."""

    nodes: tuple[str, ...]
    ranks: int

    @property
    def label(self) -> str:
        return self.nodes[0] if len(self.nodes) == 1 else f"{self.nodes[0]} - {self.nodes[-1]}"


@dataclass(frozen=True)
class Layout:
    """Rows by rank, rows by node, and cells: what one row of ranks did on one row of nodes.
    cells: rows (lane, place); places are none where there would be too many cells."""

    lanes: tuple[Lane, ...]
    places: tuple[Place, ...]
    cells: np.ndarray

    @property
    def is_by_lane(self) -> bool:
        """Whether each lane is one cell."""
        return len(self.cells) == len(self.lanes)


@dataclass(frozen=True)
class Timeline:
    """by_cell: tiles of shape (cells, bins); by_group: (groups, bins). A slice lasts 2**shift ns,
    the axis length_ns."""

    shift: int
    length_ns: int
    segments: tuple[Segment, ...]
    layout: Layout
    groups: tuple[str, ...]
    by_cell: np.ndarray
    by_group: np.ndarray

    @property
    def lanes(self) -> tuple[Lane, ...]:
        return self.layout.lanes

    @cached_property
    def by_lane(self) -> np.ndarray:
        """Shape (lanes, bins)."""
        if self.layout.is_by_lane:
            return self.by_cell
        return added(self.by_cell, self.layout.cells[:, 0], len(self.lanes))

    @cached_property
    def whole(self) -> np.ndarray:
        """Of all ranks, shape (1, bins)."""
        made = np.zeros((1, self.bins), TILE)
        for name in TILE.names:
            made[name][0] = self.by_cell[name].sum(axis=0)
        return made

    def by_place(self) -> np.ndarray:
        """Shape (places, bins)."""
        return added(self.by_cell, self.layout.cells[:, 1], len(self.layout.places))

    @property
    def bins(self) -> int:
        return self.by_cell.shape[1]

    @property
    def bin_s(self) -> float:
        return (1 << self.shift) / 1e9

    def without_rows(self) -> Timeline:
        """The same with one row of all ranks, and none of files."""
        lane = Lane(tuple(rank for one in self.lanes for rank in one.of), "all")
        layout = Layout((lane,), (), np.zeros((1, 2), np.int64))
        return replace(self, layout=layout, groups=(), by_cell=self.whole,
            by_group=self.by_group[:0].copy())

    def coarser(self) -> Timeline:
        """The same in slices twice as long. A slice that holds the seam of two steps holds a part
        of both."""
        return replace(self, shift=self.shift + 1, by_cell=coarser(self.by_cell),
            by_group=coarser(self.by_group))


def added(made: np.ndarray, into: np.ndarray, rows: int) -> np.ndarray:
    """Rows of tiles added up to others. into: of each row the one that it belongs to."""
    out = np.zeros((rows, made.shape[1]), TILE)
    words = out.view(np.uint64).reshape(rows, -1)
    for at, row in zip(into.tolist(), np.ascontiguousarray(made)):
        words[at] += row.view(np.uint64)
    return out


def timeline(
    steps: list[StepSpan], groups: tuple[str, ...] = ("all files",),
    group_of: list[list[np.ndarray]] | None = None,
    *, all_names: bool = False, most_tiles: int = MOST_TILES, most_bins: int = 1 << 16,
) -> Timeline | None:  # fmt: skip
    """Tiles of all steps; None when there are none. group_of: for each step and file, the group of
    each name."""
    if not steps:
        return None
    layout = layout_of(steps)
    most = max(64, min(most_bins, most_tiles // (len(layout.cells) + len(groups)), MOST_BINS))
    shift = _common_shift(steps, most)
    segments, by_cell, by_group, end_ns = [], [], [], 0
    for number, step in enumerate(steps):
        length = step.last_ns - step.first_ns
        grid = Grid(step.first_ns, shift, (length >> shift) + 1)
        made = tiles(
            step.data.files, step.data.lines, _rows_of(step, layout), grid,
            rows=len(layout.cells), groups=len(groups),
            groups_of=group_of[number] if group_of is not None else None, all_names=all_names,
        )  # fmt: skip
        by_cell.append(made[0])
        by_group.append(made[1])
        segments.append(Segment(step.name, end_ns, length))
        end_ns += grid.bins << shift
    joined = (parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        for parts in (by_cell, by_group))
    return Timeline(shift, end_ns, tuple(segments), layout, groups, *joined)


def _common_shift(steps: list[StepSpan], most: int) -> int:
    whole = sum(max(0, one.last_ns - one.first_ns) for one in steps)
    shift = grid_over(0, whole, most).shift
    while sum(((one.last_ns - one.first_ns) >> shift) + 1
            for one in steps) > most and len(steps) < most:
        shift += 1
    return shift


def layout_of(steps: list[StepSpan]) -> Layout:
    """A lane for each rank; where there are too many for a picture, ranks of one node share one.
    Nodes that are too many share a place with their neighbours."""
    found = {place: None for step in steps for place in step.places if place is not None}
    nodes = sorted({node for _, node in found})
    together = -(-len(nodes) // MOST_ROWS) if nodes else 1
    place_of = {node: at // together for at, node in enumerate(nodes)}
    places = [tuple(nodes[at : at + together]) for at in range(0, len(nodes), together)]
    home: dict[int, int] = {}  # the place of a rank, in the first step that has it
    for number, node in found:
        home.setdefault(number, place_of[node])
    others = home.pop(NO_RANK, None)
    every = _lanes(home, len(places)) + [(NO_RANK,)] * (others is not None)
    lanes = [Lane.named(one, steps[0].ranks) for one in every]
    lane_of = {rank: at for at, lane in enumerate(lanes) for rank in lane.of}
    pairs = {(lane_of[rank], place_of[node]) for rank, node in found}
    cells = np.array(sorted(pairs) or [(0, 0)], np.int64).reshape(-1, 2)
    if len(cells) > MOST_CELLS:
        every = np.arange(len(lanes))
        return Layout(tuple(lanes), (), np.column_stack((every, np.zeros_like(every))))
    ranks_in = Counter(at for rank, at in {(rank, place_of[node]) for rank, node in found}
        if rank != NO_RANK)
    made = tuple(Place(names, ranks_in[at]) for at, names in enumerate(places))
    return Layout(tuple(lanes) or (Lane((0,), "0"),), made, cells)


def _lanes(home: dict[int, int], places: int) -> list[tuple[int, ...]]:
    """home: the place of each rank."""
    if len(home) <= MOST_ROWS:
        return [(rank,) for rank in in_order(home)]
    by_place: list[list[int]] = [[] for _ in range(places)]
    for rank in in_order(home):
        by_place[home[rank]].append(rank)
    together = -(-len(home) // MOST_ROWS)
    while sum(-(-len(its) // together) for its in by_place) > max(MOST_ROWS, places):
        together += 1
    lanes = [tuple(its[at : at + together]) for its in by_place
        for at in range(0, len(its), together)]
    return sorted(lanes, key=lambda lane: (lane[0] < 0, abs(lane[0])))


def _rows_of(step: StepSpan, layout: Layout) -> list[np.ndarray]:
    """The cell of each process of each file."""
    lane = {rank: at for at, lane in enumerate(layout.lanes) for rank in lane.of}
    place = {node: at for at, one in enumerate(layout.places) for node in one.nodes}
    cell = {tuple(pair): at for at, pair in enumerate(layout.cells.tolist())}
    cell_of = np.array([
        NOWHERE if one is None else cell.get((lane.get(one[0], -1), place.get(one[1], 0)), NOWHERE)
        for one in step.places], np.uint32)
    limits = np.cumsum([0, *(len(file.processes) for file in step.data.files)])
    return [cell_of[begin:end] for begin, end in zip(limits, limits[1:])]


def sums(made: np.ndarray) -> dict[str, np.ndarray]:
    """Totals over all slices: for each row, busy_ns and calls (reads, writes, other), bytes (reads,
    writes)."""
    return {name: made[name].sum(axis=1) for name in TILE.names}
