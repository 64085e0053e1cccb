# SPDX-License-Identifier: Apache-2.0
"""Sections drawn as tables with bars in their cells: they need no script, print, and are read aloud
as they stand."""

from __future__ import annotations

from dataclasses import dataclass

from weir.analysis.names import shown
from weir.report.files.compute import FileTotals, chosen, files_of
from weir.report.files.groups import FileGroup, group_table
from weir.report.frame.amounts import seconds, share
from weir.report.frame.build import Report
from weir.report.frame.figures import decimals, duration, size
from weir.report.frame.section import Section, rendered
from weir.report.requests.compute import requests_of
from weir.report.steps.table import step_table
from weir.report.wall.critical import critical_by_step

TOP_FILES = 30
TIME_LEGEND = (("critical", "I/O that the step waits for"), ("active", "I/O beside computing"),
    ("wall", "no I/O"))


@dataclass(frozen=True)
class Bar:
    """A line of a chart: parts in per cent of the longest line, each with the class that colours
    it; text: the figures."""

    label: str
    parts: tuple[tuple[str, float], ...]
    text: str


def steps(report: Report) -> Section:
    """Wall clock of each step and the part of it in which at least one rank was in I/O; below, the
    table."""
    longest = max((step.wall_ns for step in report.steps), default=0) or 1
    bars, has_critical = [], False
    # waits are those of all ranks
    delays = critical_by_step(report) if report.choice.rank is None else [None] * len(report.steps)
    for step, delay in zip(report.steps, delays):
        active = min(step.active_ns or 0, step.wall_ns)
        critical = min(delay or 0, active)
        has_critical = has_critical or critical > 0
        parts = tuple((kind, 100 * ns / longest)
            for kind, ns in time_parts(step.wall_ns, active, critical))
        label = (
            ""
            if step.active_ns is None
            else f", I/O active {seconds(step.active_ns / 1e9)} "
                f"({share(step.active_ns, step.wall_ns)})"
        )
        if critical:
            label += f", waited for {seconds(critical / 1e9)} ({share(critical, step.wall_ns)})"
        bars.append(Bar(step.name, parts, seconds(step.wall_ns / 1e9) + label))
    legend = (("active", "at least one rank in I/O"), ("wall", "rest of the wall clock"))
    if has_critical:
        legend = TIME_LEGEND
    if report.active_ns is None:
        legend = (("wall", "wall clock"),)
    untimed = [step.name for step in report.steps if step.active_ns is None]
    return Section("steps", "Steps", rendered("steps.j2", bars=bars, legend=legend, untimed=untimed,
        table=step_table(report)))


def time_parts(
    wall_ns: int, active_ns: int | None, critical_ns: int | None
) -> tuple[tuple[str, int], ...]:
    """Of a wall time, by class of TIME_LEGEND. None: not recorded."""
    active = min(active_ns or 0, wall_ns)
    critical = min(critical_ns or 0, active)
    return ("critical", critical), ("active", active - critical), ("wall", wall_ns - active)


def sizes(report: Report) -> Section | None:
    """Reads and writes by size, and by duration."""
    found = requests_of(report)
    if not found.sizes and not found.durations:
        return None
    by_size = [
        (_size_label(one.least_bytes, one.most_bytes), one.reads + one.below_reads,
            one.writes + one.below_writes)
        for one in found.sizes
    ]
    by_time = [
        (f"{duration(one.from_ns)} - {'' if one.to_ns is None else duration(one.to_ns)}", one.reads,
            one.writes)
        for one in found.durations
    ]
    charts = [
        (title, head, rows, max((max(read, write) for _, read, write in rows), default=0) or 1)
        for title, head, rows in (("By size", "Size", by_size), ("By duration", "Time", by_time))
        if rows
    ]
    small = (
        f"{share(found.small_app, found.of_app)} of the application's reads and writes are "
        "below 4 KiB."
        if found.of_app
        else ""
    )
    return Section("requests", "Sizes and durations of reads and writes",
        rendered("requests.j2", charts=charts, small=small), brief="Sizes")


def _size_label(least: int, most: int | None) -> str:
    if most == 0:
        return "0 B"
    return f"{size(least)} - {'' if most is None else size(most + 1)}"


def files(report: Report, groups: list[FileGroup]) -> Section | None:
    """The files with the most I/O time, those that belong together and each by itself."""
    every = files_of(report)
    top = chosen(every, top=TOP_FILES)
    if not top:
        return None
    whole = report.all.ns or 1
    longest = top[0].ns or 1
    rows = [_file_row(one, report.cwd, whole, longest) for one in top]
    return Section("files", "Files", rendered("files.j2", rows=rows, every=len(every),
        groups=group_table(groups)))


def _file_row(one: FileTotals, cwd: str | None, whole_ns: int,
        longest_ns: int) -> dict[str, object]:
    return {
        "name": shown(one.file, cwd),
        "path": one.file,
        "msec": decimals(one.ns / 1e6),
        "share": share(one.ns, whole_ns),
        "bar": 100 * one.ns / longest_ns,
        "read": one.bytes_read / 1e6,
        "written": one.bytes_written / 1e6,
        "rate": one.rate_mb_s,
        "calls": one.calls,
    }
