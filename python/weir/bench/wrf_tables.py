# SPDX-License-Identifier: Apache-2.0
"""The tables of ``weir bench wrf`` and the same as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from weir.bench import wrf_input
from weir.bench.nersc_tables import machine
from weir.bench.wrf import Options, Row, sizes
from weir.bench.wrf_goals import Goal, criteria
from weir.bench.wrf_input import InputRow
from weir.report.frame.table import Table, text_lines
from weir.report.render import screen_width
from weir.scaling.compute import RunTimes, Scaling, scaling
from weir.scaling.table import curve_tables, scaling_json

HEAD = ("<writer", "ranks", "effective s", "total s", "final s", "output %", "MB/s", "CPU s/GB",
    "MB a server", "values compared")


def header(options: Options, mpi: str, bytes_of_frame: float | None) -> str:
    size = f", {bytes_of_frame / 1e6:,.0f} MB a frame" if bytes_of_frame else ""
    computing = "sleeps" if options.compute == "sleep" else "uses the processors"
    return (
        f"{sizes(options.scale)} points, 28 levels{size}, {options.frames} frames; {mpi}; the "
        f"model computes {options.interval_s:g} s between frames "
        f"and {computing}; medians of {options.repeat}"
    )


def text(options: Options, mpi: str, rows: Sequence[Row], found: Sequence[Goal],
        read: Sequence[InputRow] = ()) -> str:
    """All that is printed."""
    frame = next((row.model["bytes"].median / options.frames for row in rows if row.model), None)
    printed = [*tables(options, rows, found, read), *curve_tables(curves(rows))]
    texts = ("\n".join(text_lines(one, screen_width(), is_split=False)) for one in printed)
    return "\n\n".join([header(options, mpi, frame), *texts])


def tables(options: Options, rows: Sequence[Row], found: Sequence[Goal],
        read: Sequence[InputRow] = ()) -> list[Table]:
    of_reference = criteria(rows)
    made = [writers(rows)]
    if read:
        made.append(wrf_input.table(read))
    if of_reference:
        made.append(goals(of_reference, "Criteria of the reference"))
    if found:
        made.append(replace(goals(found), remarks=_of_small_frames(options)))
    return made


def _of_small_frames(options: Options) -> tuple[str, ...]:
    """Rates of a few MB are those of the first touch of files and memory."""
    if options.scale >= Options.scale:
        return ()
    return (f"the goals are for frames of --scale {Options.scale:g} or more (118 MB): opening files "
            f"and the first use of memory count more in those of --scale {options.scale:g}",)


def writers(rows: Sequence[Row]) -> Table:
    """What the model sees, in a model that computes (first columns), and how fast the writer is,
    back to back (MB/s, CPU)."""
    missing = tuple(f"{row.way.title}: {row.error}" for row in rows if row.error)
    return Table("Writers", HEAD, tuple(_cells(row) for row in rows if not row.error),
        remarks=missing)


def _cells(row: Row) -> tuple[str, ...]:
    m, b = row.model, row.burst
    memory = max(m["server_bytes"].high, b["server_bytes"].high)
    return (
        row.way.title,
        f"{row.ranks}+{row.servers}" if row.servers else str(row.ranks),
        f"{m['effective_s'].median:.3f}",
        f"{m['total_s'].median:.2f}",
        f"{m['final_s'].median:.3f}",
        f"{m['percent'].median:.1f}",
        f"{b['mb_s'].median:,.0f}",
        f"{b['cpu_s_per_gb'].median:.2f}",
        f"{memory / 1e6:.0f}" if row.servers else "",
        f"{row.compared:,}" if row.compared else "",
    )


def curves(rows: Sequence[Row]) -> dict[str, Scaling]:
    """Of each writer that ran on several numbers of ranks: the time for the same frames, back to
    back."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if not row.error and row.way.program != "plain":  # as many ranks as servers, always
            found.setdefault(row.way.title, []).append(row)
    return {title: scaling([_run_times(row) for row in its]) for title, its in found.items()
        if len({row.ranks for row in its}) > 1}


def _run_times(row: Row) -> RunTimes:
    wall, visible, end = (row.burst[key].median for key in ("total_s", "effective_s", "final_s"))
    parts = {"visible to the model": visible, "end of the output": end,
        "(rest)": max(0.0, wall - visible - end)}
    return RunTimes(f"{row.way.name} {row.ranks}", row.ranks, 1, round(1e9 * wall),
        {part: round(1e9 * time) for part, time in parts.items()})


def goals(found: Sequence[Goal], title: str = "Goals") -> Table:
    cells = []
    for goal in found:
        sign = ">=" if goal.least else "<="
        outcome = (
            f"not measured: {goal.why}" if goal.met is None else "met" if goal.met else "MISSED"
        )
        value = "" if goal.value is None else f"{goal.value:,.0f}" if abs(
            goal.value) >= 100 else f"{goal.value:.3g}"
        limit = f"{sign} {goal.limit:,.4g}" if goal.unit or goal.value is not None else ""
        cells.append((goal.what, value, goal.unit, limit, outcome))
    return Table(title, ("<goal", "figure", "<", "limit", "<"), tuple(cells))


def as_data(options: Options, mpi: str, rows: Sequence[Row],
        found: Sequence[Goal], read: Sequence[InputRow] = ()) -> dict[str, Any]:
    return {
        "machine": machine(),
        **asdict(options),
        "frames": options.frames,
        "mpi": mpi,
        "writers": [
            {
                "name": row.way.name,
                "title": row.way.title,
                "ranks": row.ranks,
                "servers": row.servers,
                "error": row.error or None,
                "values_compared": row.compared,
                "model": {name: asdict(spread) for name, spread in row.model.items()},
                "back_to_back": {name: asdict(spread) for name, spread in row.burst.items()},
            }
            for row in rows
        ],
        "curves": {title: scaling_json(one) for title, one in curves(rows).items()},
        "goals": [{**asdict(goal), "met": goal.met} for goal in found],
        "criteria": [{**asdict(goal), "met": goal.met} for goal in criteria(rows)],
        "input": wrf_input.as_data(read),
    }
