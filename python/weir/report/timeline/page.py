# SPDX-License-Identifier: Apache-2.0
"""The sections with time along their width: lanes of ranks, heat map, rates. All three share one
set of packed tiles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from weir.analysis.names import fold
from weir.report.file_systems.compute import file_system_totals, mount_of
from weir.report.frame.build import Report, StepReport, figure
from weir.report.frame.section import Section, rendered
from weir.report.frame.table import Table
from weir.report.timeline.compute import StepSpan, Timeline, sums, timeline
from weir.report.timeline.encode import Packed, pack

MOST_TEXT = 1_200_000  # characters of all tiles together: what keeps the page below 2 MB
MOST_LANES_TEXT = 1_000_000
MOST_SLICES = 8192  # of the rates
TABLE_SLICES = 24
MOST_FILE_SYSTEMS = 4  # lines that can be distinguished
MOST_TABLE_ROWS = 100
MOST_TABLE_STEPS = 16


def span_of(step: StepReport) -> StepSpan:
    """The step's wall clock, and what I/O there was before or after it."""
    first, last = step.started_ns, step.started_ns + step.wall_ns
    if len(step.columns):
        first, last = min(first, int(step.columns.first_ns.min())), max(last,
            int(step.columns.last_ns.max()))
    return StepSpan(step.data, step.members, first, last)


def has_calls(step: StepReport) -> bool:
    """Whether single calls were recorded, which alone have a place in time."""
    return step.level == "trace" and bool(step.data.files)


@figure
def timeline_of(report: Report) -> Timeline | None:
    """None when no step with I/O was recorded at level trace."""
    traced = [step for step in report.steps if has_calls(step)]
    groups, group_of = _file_systems(traced)
    made = timeline([span_of(step) for step in traced], groups, group_of,
        all_names=report.choice.everything)
    if made is None or not made.by_lane["calls"].any():
        return None
    return _with_used_groups(made)


def over_time(report: Report) -> list[Section]:
    """Nothing when no step was recorded at level trace."""
    made = timeline_of(report)
    if made is None:
        return []
    lanes, by_lane = _within(made, "by_lane", MOST_LANES_TEXT)
    rates, by_group = _within(_at_most(made, MOST_SLICES), "by_group", MOST_TEXT - MOST_LANES_TEXT)
    common = {"untraced": [step.name for step in report.steps if not has_calls(step)],
        "steps": len(made.segments)}
    common["has_waits"] = bool(made.by_lane["waiting_ns"].any())
    return [
        Section(
            "timeline", "Timeline by rank", rendered("timeline.j2", table=_rank_table(made),
                **common),
            _description(lanes, by_lane, [lane.label for lane in made.lanes],
                [lane.ranks for lane in made.lanes]),
            {"tiles": by_lane.text}, "Timeline",
        ),
        Section("heat", "Heat map", rendered("heat.j2", table=_moved_table(made), **common)),
        Section(
            "rates", "Bandwidth and operations over time",
            rendered("rates.j2", table=_rate_table(made), groups=made.groups, **common),
            _description(rates, by_group, list(made.groups), [1] * len(made.groups)),
            {"tiles": by_group.text}, "Rates",
        ),
    ]  # fmt: skip


def _file_systems(steps: list[StepReport]) -> tuple[tuple[str, ...], list[list[np.ndarray]] | None]:
    """Names of the groups of files, and for each step and trace file the group of each name; group
    0 has what lies on no known mount."""
    parts = [(step.data, step.columns) for step in steps]
    busiest = [one.mount
        for one in file_system_totals(parts, steps[0].names)][:MOST_FILE_SYSTEMS] if steps else []
    if not busiest:
        return ("all files",), None
    number = {mount: 1 + i for i, mount in enumerate(busiest)}
    group_of = [
        [np.array([number.get(mount_of(step.data, fold(text)), 0) for text in file.texts],
            np.uint8) for file in step.data.files]
        for step in steps
    ]
    return ("other files", *(f"{mount.point} ({mount.kind})" for mount in busiest)), group_of


def _with_used_groups(made: Timeline) -> Timeline:
    """Those with calls, the files of no known mount last."""
    used = [i for i in (*range(1, len(made.groups)), 0) if made.by_group[i]["calls"].any()]
    return replace(made, groups=tuple(made.groups[i] for i in used), by_group=made.by_group[used])


def _planes(tiles: np.ndarray) -> list[np.ndarray]:
    """ns in reads, writes, other; bytes read, written; calls; ns of waiting in MPI: the order of
    assets/tiles.js."""
    return [*np.moveaxis(tiles["busy_ns"], -1, 0), *np.moveaxis(tiles["bytes"], -1,
        0), tiles["calls"].sum(axis=-1), tiles["waiting_ns"]]


def _at_most(made: Timeline, bins: int) -> Timeline:
    while made.bins > bins:
        made = made.coarser()
    return made


def _within(made: Timeline, which: str, most_text: int) -> tuple[Timeline, Packed]:
    """The finest slices whose text is not too long."""
    bits = 8 if which == "by_lane" else 16
    while True:
        packed = pack(_planes(getattr(made, which)), bits)
        if len(packed.text) <= most_text or made.bins < 64:
            return made, packed
        made = made.coarser()


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
        groups: tuple[tuple[str, int], ...] = ()) -> Table:
    more = (f"the first {MOST_TABLE_ROWS} of {len(rows)} lanes",
        ) if len(rows) > MOST_TABLE_ROWS else ()
    return Table(title, ("<Rank", *columns), tuple(rows[:MOST_TABLE_ROWS]), groups, remarks=more)


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
    shown = made.segments[:MOST_TABLE_STEPS]
    limits = [one.from_ns >> made.shift for one in made.segments] + [made.bins]
    moved = made.by_lane["bytes"].sum(axis=-1)
    parts = [moved[:, begin:end].sum(axis=1)
        for begin, end in zip(limits, limits[1:])][: len(shown)]
    rows = [(lane.label, *_figures(*(part[i] / 1e6 for part in parts)))
        for i, lane in enumerate(made.lanes)]
    title = "MB moved by each rank in each step" + (f" (the first {len(shown)} steps)"
        if len(shown) < len(made.segments) else "")
    return _lane_table(title, tuple(one.step for one in shown), rows)


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
