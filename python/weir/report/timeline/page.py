# SPDX-License-Identifier: Apache-2.0
"""The sections with time along their width: lanes of ranks, heat map, rates. All three share one
set of packed tiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from weir.report.file_systems.compute import (
    UNKNOWN, Mount, file_system_totals, file_systems_of, mounts_of_step
)  # fmt: skip
from weir.report.files.compute import files_of
from weir.report.files.groups import FileGroup, file_groups
from weir.report.frame.amounts import fitted
from weir.report.frame.build import Report, StepReport, figure, keep_instead
from weir.report.frame.section import Section, rendered
from weir.report.frame.table import Table
from weir.report.timeline.compute import Layout, StepSpan, Timeline, added, sums, timeline
from weir.report.timeline.encode import Packed, pack

# Characters of tiles: what keeps the page below 2 MB.
MOST_LANES_TEXT, MOST_RATES_TEXT, MOST_FILES_TEXT = 900_000, 200_000, 200_000
MOST_SLICES = 8192  # of the rates
TABLE_SLICES = 24
MOST_FILE_SYSTEMS = 4  # lines that can be distinguished
MOST_FILES = 24  # rows of the heat map, beside that of all others
LONGEST_NAME = 44  # characters of a file in the heat map
MOST_TABLE_ROWS = 100
MOST_TABLE_STEPS = 16


def span_of(step: StepReport) -> StepSpan:
    """The step's wall clock, and what I/O there was before or after it."""
    first, last = step.started_ns, step.started_ns + step.wall_ns
    if len(step.sums):
        first, last = min(first, int(step.sums.first_ns.min())), max(last,
            int(step.sums.last_ns.max()))
    return StepSpan(step.data, step.members, first, last, step.names.ranks)


def has_calls(step: StepReport) -> bool:
    """Whether single calls were recorded, which alone have a place in time."""
    return step.level == "trace" and bool(step.data.files)


@figure
def timeline_of(report: Report) -> Timeline | None:
    """By rank, node, and file; None when no step with I/O was recorded at level trace."""
    traced = [step for step in report.steps if has_calls(step)]
    parts = parts_of(report)
    made = timeline([span_of(step) for step in traced], tuple(map(str, range(len(parts.of)))),
        parts.group_of, all_names=report.choice.everything)
    if made is None or not made.whole["calls"].any():  # made here, while the tiles are in memory
        return None
    return made


@dataclass(frozen=True)
class Parts:
    """The groups of the timeline: files that belong together on one file system, so that rates of
    file systems and those of files are sums of them. of: (row of files, file system) of each;
    group_of: for each step and trace file, the part of each name.

    files: names, the last one of all others. mounts: names, the first one of no known mount."""

    files: tuple[str, ...]
    mounts: tuple[str, ...]
    of: np.ndarray
    group_of: list[list[np.ndarray]]

    def by_file(self, made: Timeline) -> Timeline:
        return _with_used_groups(self._by(made, 0, self.files))

    def by_mount(self, made: Timeline) -> Timeline:
        """The files of no known mount last."""
        found = self._by(made, 1, self.mounts)
        order = [*range(1, len(self.mounts)), 0]
        return _with_used_groups(replace(found, by_group=found.by_group[order],
            groups=tuple(self.mounts[at] for at in order)))

    def _by(self, made: Timeline, which: int, names: tuple[str, ...]) -> Timeline:
        sums = added(made.by_group, self.of[:, which], len(names))
        return replace(made, groups=names, by_group=sums, by_cell=made.by_cell[:0])


@figure
def parts_of(report: Report) -> Parts:
    steps = [step for step in report.steps if has_calls(step)]
    groups = [one for one in file_groups(report) if one.ns][:MOST_FILES]
    found = file_systems_of(report) if len(steps) == len(report.steps) else (
        file_system_totals(steps))
    busiest = [one.mount for one in found][:MOST_FILE_SYSTEMS]
    number = {mount: 1 + at for at, mount in enumerate(busiest)}
    mounts = ("other files" if busiest else "all files",
        *(f"{mount.point} ({mount.kind})" for mount in busiest))
    row_of = _rows_of_names(report, groups)
    codes = []
    for step in steps:
        mount_of = _mounts_of_names(step, number)
        codes.append([row_of[numbers] * len(mounts) + mount_of[numbers]
            for numbers in step.data.name_numbers])
    rest = len(groups) * len(mounts)  # of records without a name
    used = np.unique(np.concatenate([[rest], *(code for step in codes for code in step)]))
    order = np.argsort(used != rest, kind="stable")  # the rest first: the reader puts it there
    place = np.empty(len(used), np.uint8)
    place[order] = np.arange(len(used))
    group_of = [[place[np.searchsorted(used, code)] for code in step] for step in codes]
    used = used[order]
    of = np.column_stack(np.divmod(used, len(mounts)))
    return Parts((*(one.name for one in groups), "other files"), mounts, of, group_of)


def _mounts_of_names(step: StepReport, number: dict[Mount, int]) -> np.ndarray:
    """By number of a name: that of its mount on the first node that knows it, 0 for others."""
    found = np.zeros(len(step.names.names), np.int64)
    tables = mounts_of_step(step.data) if number else []
    for name in np.unique(np.concatenate([np.zeros(0, np.int32), *step.data.name_numbers])
            ).tolist() if tables else ():
        every = (mounts.of(step.names[name]) for mounts in tables)
        found[name] = number.get(next((one for one in every if one != UNKNOWN), UNKNOWN), 0)
    return found


def _rows_of_names(report: Report, groups: list[FileGroup]) -> np.ndarray:
    """By number of a name: the group that it is in, or the number of groups."""
    files = {one.file: one for one in files_of(report)}
    row_of = np.full(len(report.names.names), len(groups), np.int64)
    for at, group in enumerate(groups):
        for member in group.members:
            row_of[[report.names.number(name) for name in (member, *files[member].also)]] = at
    return row_of


def over_time(report: Report) -> list[Section]:
    """Nothing when no step was recorded at level trace."""
    made = timeline_of(report)
    if made is None:
        return []
    parts = parts_of(report)
    only_cells = replace(made, by_group=made.by_group[:0])
    lanes, by_cell = _within(only_cells, "by_cell", MOST_LANES_TEXT)
    files, by_file = _within(parts.by_file(made), "by_group", MOST_FILES_TEXT, bits=8)
    rates, by_group = _within(_at_most(parts.by_mount(made), MOST_SLICES), "by_group",
        MOST_RATES_TEXT, bits=16)
    common = {"untraced": [step.name for step in report.steps if not has_calls(step)],
        "steps": len(made.segments)}
    common["has_waits"] = bool(made.by_cell["waiting_ns"].any())
    nodes = made.layout.places if len(made.layout.places) > 1 else ()
    tables = [_moved_table(made), *([_node_table(made)] if nodes else [])]
    names = [fitted(one, LONGEST_NAME) for one in files.groups]
    keep_instead(timeline_of, report, made.without_rows())
    return [
        Section(
            "timeline", "Timeline by rank", rendered("timeline.j2", table=_rank_table(made),
                **common),
            _description(lanes, by_cell, [lane.label for lane in made.lanes],
                [lane.ranks for lane in made.lanes]) | _cells(made.layout),
            {"tiles": by_cell.text}, "Timeline",
        ),
        Section(
            "heat", "Heat map", rendered("heat.j2", tables=tables, nodes=nodes, files=names,
                has_too_many=not made.layout.places, **common),
            _description(files, by_file, names, [1] * len(names)),
            {"tiles": by_file.text},
        ),
        Section(
            "rates", "Bandwidth and operations over time",
            rendered("rates.j2", table=_rate_table(rates), groups=rates.groups, **common),
            _description(rates, by_group, list(rates.groups), [1] * len(rates.groups)),
            {"tiles": by_group.text}, "Rates",
        ),
    ]  # fmt: skip


def _cells(layout: Layout) -> dict[str, Any]:
    """By cell the row of ranks and that of nodes; and the latter."""
    lane, place = layout.cells.T.tolist()
    return {"lane_of": lane, "node_of": place, "nodes": [one.label for one in layout.places],
        "node_ranks": [max(1, one.ranks) for one in layout.places]}


def _with_used_groups(made: Timeline) -> Timeline:
    """Those with calls."""
    used = [i for i in range(len(made.groups)) if made.by_group[i]["calls"].any()]
    return replace(made, groups=tuple(made.groups[i] for i in used), by_group=made.by_group[used])


def _planes(tiles: np.ndarray) -> Iterator[np.ndarray]:
    """ns in reads, writes, other; bytes read, written; calls; ns of waiting in MPI: the order of
    assets/tiles.js."""
    for name in ("busy_ns", "bytes"):
        yield from np.moveaxis(tiles[name], -1, 0)
    yield tiles["calls"].sum(axis=-1)
    yield tiles["waiting_ns"]


def _at_most(made: Timeline, bins: int) -> Timeline:
    while made.bins > bins:
        made = made.coarser()
    return made


def _within(made: Timeline, which: str, most_text: int, bits: int = 8
        ) -> tuple[Timeline, Packed]:
    """The finest slices whose text is not too long."""
    while (packed := pack(_planes(getattr(made, which)), bits,
            None if made.bins < 64 else most_text)) is None:
        made = made.coarser()
    return made, packed


def _description(made: Timeline, packed: Packed, rows: list[str],
        ranks: list[int]) -> dict[str, Any]:
    return {
        "slice_s": made.bin_s,
        "slices": made.bins,
        "length_s": made.length_ns / 1e9,
        "rows": rows,
        "ranks": ranks,
        "bits": packed.bits,
        "least": packed.least,
        "step": packed.step,
        "segments": [
            {"step": one.step, "from_s": one.from_ns / 1e9, "length_s": one.length_ns / 1e9}
            for one in made.segments
        ],
    }


def _figures(*values: float) -> tuple[str, ...]:
    return tuple(f"{value:.3f}" for value in values)


def _lane_table(title: str, columns: tuple[str, ...], rows: list[tuple[str, ...]],
        groups: tuple[tuple[str, int], ...] = (), first: str = "Rank") -> Table:
    more = (f"the first {MOST_TABLE_ROWS} of {len(rows)} rows",
        ) if len(rows) > MOST_TABLE_ROWS else ()
    shown = tuple(rows[:MOST_TABLE_ROWS])
    return Table(title, (f"<{first}", *columns), shown, groups, remarks=more)


def _rank_table(made: Timeline) -> Table:
    """Behind the lanes: what each did in all steps."""
    total = sums(made.by_lane)
    rows = [
        (lane.label, *_figures(*(busy / 1e9), waiting / 1e9, *(moved / 1e6)), str(int(calls.sum())))
        for lane, busy, waiting, moved, calls in zip(made.lanes,
            *(total[key] for key in ("busy_ns", "waiting_ns", "bytes", "calls")))
    ]
    columns = ("reads", "writes", "other calls", "waits in MPI", "read", "written", "Calls")
    return _lane_table("I/O of each rank", columns, rows, (("", 1), ("seconds in", 4), ("MB", 2),
        ("", 1)))


def _moved_table(made: Timeline) -> Table:
    """Behind the heat map: MB of each lane in each step."""
    return _moved("rank", made, made.by_lane, [lane.label for lane in made.lanes])


def _node_table(made: Timeline) -> Table:
    return _moved("node", made, made.by_place(), [one.label for one in made.layout.places])


def _moved(what: str, made: Timeline, by_row: np.ndarray, labels: list[str]) -> Table:
    shown = made.segments[:MOST_TABLE_STEPS]
    limits = [one.from_ns >> made.shift for one in made.segments] + [made.bins]
    moved = by_row["bytes"].sum(axis=-1)
    parts = [moved[:, begin:end].sum(axis=1)
        for begin, end in zip(limits, limits[1:])][: len(shown)]
    rows = [(label, *_figures(*(part[i] / 1e6 for part in parts)))
        for i, label in enumerate(labels)]
    title = f"MB moved by each {what} in each step" + (f" (the first {len(shown)} steps)"
        if len(shown) < len(made.segments) else "")
    return _lane_table(title, tuple(one.step for one in shown), rows, first=what.capitalize())


def _rate_table(made: Timeline) -> Table:
    """Behind the lines: at most TABLE_SLICES stretches of time."""
    coarse = _at_most(made, TABLE_SLICES)
    width = coarse.bin_s
    rows = [
        (group, *_figures(i * width, (i + 1) * width, *(tile["bytes"] / 1e6 / width),
            int(tile["calls"].sum()) / width))
        for group, row in zip(coarse.groups, coarse.by_group)
        for i, tile in enumerate(row)
    ]
    return Table("Bandwidth and calls over time", ("<Files", "From s", "To s", "MB/s read",
        "MB/s written", "Calls/s"), tuple(rows))
