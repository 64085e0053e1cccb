# SPDX-License-Identifier: Apache-2.0
"""The pictures of the first screen that need no script: I/O over time, and the files that matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from weir.report.files.groups import FileGroup
from weir.report.frame.amounts import amount, counted, digits, fitted, seconds
from weir.report.frame.build import Report
from weir.report.html.chart import Frame, Mark, round_step
from weir.report.overview import CRITICAL_SHARE
from weir.report.timeline.compute import Timeline
from weir.report.timeline.page import timeline_of
from weir.report.wall.critical import critical_by_file, critical_by_group

MOST_COLUMNS = 240  # of the picture over time: one and a half pixels each
MOST_FILES = 7
LONGEST_NAME = 52  # characters of a name of the picture
_FRAME = Frame(400, 230, left=52, right=392, top=18, bottom=196, along="s since the start")


@dataclass(frozen=True)
class Area:
    """kind: the class of its colour; path: of an SVG."""

    kind: str
    path: str


@dataclass(frozen=True)
class LinePicture:
    """Reads go up from the middle, writes down; calls of a run that moves no bytes up alone."""

    title: str
    label: str
    legend: tuple[tuple[str, str], ...]
    frame: Frame
    areas: list[Area]
    zero: float
    steps: list[Mark]


@dataclass(frozen=True)
class FileBar:
    """paths: of all its files; width: per cent of the longest."""

    name: str
    paths: str
    width: float
    figure: str


@dataclass(frozen=True)
class FilePicture:
    title: str
    legend: tuple[str, str]
    bars: list[FileBar]


def over_time_picture(report: Report) -> LinePicture | None:
    """None where single calls were not recorded."""
    return over_time_pictures([report])[0]


def over_time_pictures(reports: Sequence[Report]) -> list[LinePicture | None]:
    """Of several runs, on the same axes."""
    made = [timeline_of(report) for report in reports]
    drawn = [_Rates(_few_columns(one)) for one in made if one is not None]
    axes = _Axes(drawn) if drawn else None
    rates = iter(drawn)
    return [None if one is None or axes is None else axes.picture(next(rates)) for one in made]


def _few_columns(made: Timeline) -> Timeline:
    """What all ranks did, as one row."""
    made = replace(made, by_cell=made.whole, by_group=made.by_group[:0])
    while made.bins > MOST_COLUMNS:
        made = made.coarser()
    return made


class _Rates:
    """What a run moved in each slice, per second: bytes read and written, and calls."""

    def __init__(self, made: Timeline):
        self.made = made
        self.moved = made.by_cell["bytes"].sum(axis=0).T / made.bin_s
        self.calls = made.by_cell["calls"].sum(axis=(0, -1))[np.newaxis] / made.bin_s


class _Axes:
    """Of the rates of several runs."""

    def __init__(self, every: list[_Rates]):
        greatest = max(one.moved.max() for one in every)
        self.is_moved = bool(greatest)
        self.unit, self.scale = ("GB/s", 1e9) if greatest >= 10e9 else ("MB/s", 1e6)
        if not self.is_moved:
            self.unit, self.scale = "calls/s", 1.0
        self.kinds = ("read", "write") if self.is_moved else ("other",)
        tops = np.max([self.rates(one).max(axis=1) for one in every], axis=0)
        ups, downs = float(tops[0]), float(tops[1]) if self.is_moved else 0.0
        self.step = round_step((ups + downs) or 1.0, 5)
        high, low = (max(0, int(np.ceil(one / self.step))) for one in (ups, downs))
        self.high, self.low = high or int(not low), low
        self.length_s = max(one.made.length_ns for one in every) / 1e9

    def rates(self, one: _Rates) -> np.ndarray:
        return (one.moved if self.is_moved else one.calls) / self.scale

    def picture(self, one: _Rates) -> LinePicture:
        whole = self.high + self.low
        scale = (_FRAME.bottom - _FRAME.top) / (whole * self.step)
        zero = _FRAME.y(self.low / whole)
        across = (_FRAME.right - _FRAME.left) / self.length_s
        areas = [
            Area(kind, _path(rate * scale * (1, -1)[i], zero, one.made.bin_s * across,
                one.made.length_ns / 1e9 * across))
            for i, (kind, rate) in enumerate(zip(self.kinds, self.rates(one)))
        ]
        rises = [self.step * i for i in range(-self.low, self.high + 1)]
        times = round_step(self.length_s, 5)
        ends = [times * i for i in range(int(self.length_s / times) + 1)]
        seams = [Mark(_FRAME.left + at.from_ns / 1e9 * across, at.step)
            for at in one.made.segments]
        words = {"read": "read (up)", "write": "written (down)", "other": "calls"}
        return LinePicture(
            f"I/O over time, {self.unit} of all ranks",
            f"{' and '.join(words[kind] for kind in self.kinds)} over time in {self.unit}",
            tuple((kind, words[kind]) for kind in self.kinds),
            _FRAME.marked(
                (Mark(zero - value * scale, _short(abs(value))) for value in rises),
                (Mark(_FRAME.left + at * across, f"{at:g}") for at in ends),
            ),
            areas, zero, list(_apart(seams)) if len(seams) > 1 else [],
        )  # fmt: skip


def _path(heights: np.ndarray, zero: float, width: float, whole: float) -> str:
    """Columns as one outline; neighbours of one height are one piece. whole: where the last one
    ends."""
    edges = np.flatnonzero(np.r_[True, np.diff(heights) != 0, True])
    parts = [f"M{_FRAME.left} {zero:.1f}"]
    for begin, end in zip(edges, edges[1:]):
        parts.append(f"V{zero - heights[begin]:.1f}H{_FRAME.left + min(end * width, whole):.1f}")
    return "".join([*parts, f"V{zero:.1f}Z"])


def _apart(marks: list[Mark]) -> Iterator[Mark]:
    """A line for each step, the names of those that have room for them."""
    for mark, after in zip(marks, [*marks[1:], Mark(_FRAME.right, "")]):
        room = int((after.at - mark.at - 4) / 5.5)
        yield Mark(mark.at, mark.text if len(mark.text) <= room else "")


def _short(value: float) -> str:
    return f"{value:g}" if value < 1e4 else f"{digits(value / 1e3)}k"


def files_that_matter(report: Report, groups: list[FileGroup]) -> FilePicture | None:
    """By the time by which I/O on them delays the run, where that explains a part of the run, else
    by I/O time; in the order of the overview of the terminal."""
    critical = critical_by_file(report) if report.choice.rank is None else {}
    costs = critical_by_group(groups, critical)
    explains = bool(critical) and sum(critical.values()) >= CRITICAL_SHARE * report.wall_ns
    matter = {one: ns for one in groups if (ns := costs[one] if explains else one.ns)}
    top = sorted(matter, key=lambda one: (-matter[one], -one.ns, -one.bytes, one.name))[:MOST_FILES]
    if not top:
        return None
    lengths = [matter[one] for one in top]
    bars = [_file_bar(one, 100 * ns / max(lengths), costs[one] if explains else None)
        for one, ns in zip(top, lengths)]
    others = sum(one.ns > 0 for one in groups) - len(matter)
    no_delay = f"; {counted(others, 'other file')} does not delay it" if others == 1 else \
        f"; {counted(others, 'other file')} do not delay it" * bool(others)
    legend = ("active", "I/O time of all ranks")
    if explains:
        legend = ("critical", f"time by which I/O on the file delays the run{no_delay}")
    return FilePicture("Files that matter", legend, bars)


def _file_bar(one: FileGroup, width: float, critical_ns: int | None) -> FileBar:
    """critical_ns: None where bars are of I/O time."""
    io, read, written = seconds(one.ns / 1e9), one.bytes_read, one.bytes_written
    times = [io] if critical_ns is None else [seconds(critical_ns / 1e9), f"I/O {io}"]
    moved = [f"{amount(read)} read"] * bool(read) + [f"{amount(written)} written"] * bool(written)
    figure = "; ".join(filter(None, [*times, ", ".join(moved)]))
    return FileBar(fitted(one.name, LONGEST_NAME), _paths(one), width, figure)


def _paths(one: FileGroup) -> str:
    some = "\n".join(one.members[:10])
    return some + (f"\nand {len(one.members) - 10} more" if len(one.members) > 10 else "")
