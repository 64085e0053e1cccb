# SPDX-License-Identifier: Apache-2.0
"""The pictures of the first screen that need no script: I/O over time, and the files that matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from weir.report.files.groups import FileGroup
from weir.report.frame.amounts import amount, digits, fitted, seconds
from weir.report.frame.build import Report
from weir.report.overview import CRITICAL_SHARE
from weir.report.sentences import critical_by_file, critical_by_group
from weir.report.timeline.page import timeline_of

MOST_COLUMNS = 240  # of the picture over time: one and a half pixels each
MOST_FILES = 7
LONGEST_NAME = 52  # characters of a name of the picture
# Of the picture over time, in its own units, which are pixels at its usual width.
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 400, 230, 52, 8, 18, 34


@dataclass(frozen=True)
class Mark:
    """A place on an axis, and its words."""

    at: float
    text: str


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
    areas: list[Area]
    zero: float
    vertical: list[Mark]
    horizontal: list[Mark]
    steps: list[Mark]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


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
    made = timeline_of(report)
    if made is None:
        return None
    while made.bins > MOST_COLUMNS:
        made = made.coarser()
    moved = made.by_lane["bytes"].sum(axis=0) / 1e6 / made.bin_s
    kinds, unit = ("read", "write"), "MB/s"
    rates = [moved[:, 0], moved[:, 1]]
    if not moved.any():
        kinds, unit = ("other",), "calls/s"
        rates = [made.by_lane["calls"].sum(axis=(0, -1)) / made.bin_s]
    elif moved.max() >= 10_000:
        rates, unit = [one / 1e3 for one in rates], "GB/s"
    ups = rates[0].max()
    downs = rates[1].max() if len(rates) > 1 else 0.0
    step = _round_step((ups + downs) or 1.0, 5)
    high, low = (step * max(0, int(np.ceil(one / step))) for one in (ups, downs))
    high = high or (0 if low else step)
    scale = (HEIGHT - TOP - BOTTOM) / (high + low)
    zero = TOP + high * scale
    length = made.length_ns / 1e9
    across = (WIDTH - LEFT - RIGHT) / length
    areas = [
        Area(kind, _path(rate * scale * (1, -1)[i], zero, made.bin_s * across))
        for i, (kind, rate) in enumerate(zip(kinds, rates))
    ]
    rises = [step * i for i in range(-round(low / step), round(high / step) + 1)]
    times = _round_step(length, 5)
    ends = [times * i for i in range(int(length / times) + 1)]
    seams = [Mark(LEFT + one.from_ns / 1e9 * across, one.step) for one in made.segments]
    words = {"read": "read (up)", "write": "written (down)", "other": "calls"}
    return LinePicture(
        f"I/O over time, {unit} of all ranks",
        f"{' and '.join(words[kind] for kind in kinds)} over time in {unit}",
        tuple((kind, words[kind]) for kind in kinds),
        areas,
        zero,
        [Mark(zero - value * scale, _short(abs(value))) for value in rises],
        [Mark(LEFT + at * across, f"{at:g}") for at in ends],
        list(_apart(seams)) if len(seams) > 1 else [],
    )


def _path(heights: np.ndarray, zero: float, width: float) -> str:
    """Columns as one outline; neighbours of one height are one piece."""
    edges = np.flatnonzero(np.r_[True, np.diff(heights) != 0, True])
    parts = [f"M{LEFT} {zero:.1f}"]
    for begin, end in zip(edges, edges[1:]):
        parts.append(f"V{zero - heights[begin]:.1f}H{LEFT + end * width:.1f}")
    return "".join([*parts, f"V{zero:.1f}Z"])


def _apart(marks: list[Mark]) -> Iterator[Mark]:
    """A line for each step, the names of those that have room for them."""
    for mark, after in zip(marks, [*marks[1:], Mark(WIDTH - RIGHT, "")]):
        room = int((after.at - mark.at - 4) / 5.5)
        yield Mark(mark.at, mark.text if len(mark.text) <= room else "")


def _round_step(length: float, most: int) -> float:
    """1, 2 or 5 times a power of ten, so that at most `most` of it are in the length."""
    power = 10.0 ** np.floor(np.log10(length / most))
    return next(float(one * power) for one in (1, 2, 5, 10) if one * power * most >= length * 0.999)


def _short(value: float) -> str:
    return f"{value:g}" if value < 1e4 else f"{digits(value / 1e3)}k"


def files_that_matter(report: Report, groups: list[FileGroup]) -> FilePicture | None:
    """By the time by which I/O on them delays the run, where that explains a part of the run, else
    by I/O time; in the order of the overview of the terminal."""
    critical = critical_by_file(report) if report.choice.rank is None else {}
    costs = critical_by_group(groups, critical)
    explains = bool(critical) and sum(critical.values()) >= CRITICAL_SHARE * report.wall_ns
    top = sorted((one for one in groups if one.ns), key=lambda one: (-costs[one] * explains,
        -one.ns, -one.bytes, one.name))[:MOST_FILES]
    if not top:
        return None
    lengths = [costs[one] if explains else one.ns for one in top]
    bars = [_file_bar(one, 100 * ns / max(lengths), costs[one] if explains else None)
        for one, ns in zip(top, lengths)]
    legend = ("critical", "I/O on the file delays the run by") if explains else ("active",
        "I/O time of all ranks")
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
