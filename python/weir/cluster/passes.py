# SPDX-License-Identifier: Apache-2.0
"""What workers make of the records of trace files, in parts that combine exactly."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weir.analysis.active import Active, active_time
from weir.analysis.clock import Line
from weir.analysis.columns import has_class
from weir.analysis.intervals import Union
from weir.analysis.tiles import Grid, tiles
from weir.cluster.files import Identity, opened
from weir.trace._abi import TILE, Cursor
from weir.trace.events import next_events
from weir.trace.ops import FORTRAN, MPI

Blocks = tuple[np.ndarray, np.ndarray]  # begins and ends of disjoint intervals in ns, rising


class Stretch(NamedTuple):
    """Some chunks of a file, by their place in its table."""

    file: Identity
    line: Line
    chunks: np.ndarray
    records: int


def blocks_of(stretch: Stretch, all_names: bool, cuts: np.ndarray) -> list:
    """First what there was (an Active, whose ns mean nothing), then the union of its I/O intervals
    from cut to cut, timestamps in ns."""
    file = opened(stretch.file)
    chunks, is_file = file.array("chunks"), np.r_[file.array("texts")["is_file"] != 0, True]
    begins, ends, records = [], [], 0
    first, last = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    for at in stretch.chunks.tolist():
        # more than there are: what has been read to its end leaves memory
        room = int(chunks["entries"][at]) + 1
        batch = next_events(file, stretch.line.native(), Cursor(chunk=at, end_chunk=at + 1), room)
        layer = batch["layer"]
        kept = has_class("RWOCM")[batch["op"]] & (layer <= MPI) & (layer != FORTRAN)
        if not all_names:
            kept &= is_file[np.minimum(batch["text"], len(is_file) - 1)]  # a lost name counts
        starts = batch["start_ns"][kept]
        if not len(starts):
            continue
        stops = starts + batch["duration_ns"][kept]
        first, last, records = min(first, int(starts.min())), max(last,
            int(stops.max())), records + len(starts)
        union = Union.of(starts, stops)
        begins.append(union.begins)
        ends.append(union.ends)
    nothing = np.empty(0, np.int64)
    union = Union.of(*(np.concatenate([nothing, *parts]) for parts in (begins, ends)))
    return [Active(0, first, last, records), *_cut((union.begins, union.ends), cuts)]


def _cut(blocks: Blocks, cuts: np.ndarray) -> list[Blocks]:
    """One part more than there are cuts."""
    begins, ends = blocks
    limits = [np.iinfo(np.int64).min, *cuts.tolist(), np.iinfo(np.int64).max]
    made = []
    for low, high in zip(limits, limits[1:]):
        part = slice(np.searchsorted(ends, low, "right"), np.searchsorted(begins, high, "left"))
        made.append((np.maximum(begins[part], low), np.minimum(ends[part], high)))
    return made


def length_of(parts: list[Blocks]) -> int:
    """Length in ns of the union of all parts of one stretch of time."""
    union = Union.of(*(np.concatenate(side) for side in zip(*parts)))
    return int((union.ends - union.begins).sum())


def active_of(files: list[Identity], lines: list[Line], masks: list[np.ndarray] | None,
        all_names: bool) -> Active:
    """Of whole files."""
    return active_time(tuple(map(opened, files)), tuple(lines), masks, all_names=all_names,
        threads=1)


class Lanes(NamedTuple):
    """What tiles of one file are made by: weir.analysis.tiles.tiles() explains them."""

    file: Identity
    line: Line
    rows_of: np.ndarray
    groups_of: np.ndarray | None


def tiles_of(files: list[Lanes], grid: Grid, rows: int, groups: int,
        all_names: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of the rows in which these files have processes, tiles of these rows, tiles of all
    groups."""
    used = np.unique(np.concatenate([one.rows_of[one.rows_of < rows] for one in files])).astype(
        np.int64)
    place = np.full(rows, len(used), np.uint32)
    place[used] = np.arange(len(used))
    by_row, by_group = np.zeros((len(used), grid.bins), TILE), np.zeros((groups, grid.bins), TILE)
    for one in files if len(used) else ():
        rows_of = np.where(one.rows_of < rows,
            np.r_[place, len(used)][np.minimum(one.rows_of, rows)], one.rows_of)
        groups_of = None if one.groups_of is None else [one.groups_of]
        made = tiles((opened(one.file),), (one.line,), [rows_of], grid, rows=len(used),
            groups_of=groups_of, groups=groups, all_names=all_names)
        add_tiles(by_row, made[0])
        add_tiles(by_group, made[1])
    return used, by_row, by_group


def add_tiles(into: np.ndarray, more: np.ndarray) -> None:
    """Add up tiles, figure by figure."""
    for name in TILE.names or ():
        into[name] += more[name]
