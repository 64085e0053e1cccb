# SPDX-License-Identifier: Apache-2.0
"""Requests of the files that matter, by offset and time, from the records of all ranks.

A request is a read or write at the lowest level that weir sees, as in the table of access patterns
(weir.report.patterns). Offsets of C streams follow from their opens and seeks; requests without a
known one (streams opened to append, two streams on a file at a time) are counted alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weir.analysis.names import NameTable, matches
from weir.analysis.remote import pass_over_records
from weir.analysis.step import StepData
from weir.report.files.compute import FileTotals, files_of
from weir.report.frame.build import Report
from weir.report.offsets.marks import Cells, Marks, Plot
from weir.report.timeline.compute import Timeline
from weir.report.timeline.page import has_calls, span_of
from weir.trace.events import Events, read_transfers

MOST_FILES, MOST_CHOSEN = 5, 20  # those with most I/O time, and of a pattern
MOST_MARKS, MOST_MARKS_OF_ALL = 20_000, 100_000


@dataclass(frozen=True)
class FilePlot:
    """requests, bytes: of reads and of writes; unknown: of the requests those without a known
    offset. cells: None where each mark is one request."""

    file: str
    marks: Marks
    cells: Cells | None
    requests: tuple[int, int]
    bytes: tuple[int, int]
    unknown: int


def offsets_of(report: Report, axis: Timeline, pattern: str | None = None) -> list[FilePlot]:
    """Plots of the files with most I/O time, or of those that match; on the axis of the plots over
    time."""
    files = _chosen(report, pattern)
    if not files:
        return []
    most = min(MOST_MARKS, MOST_MARKS_OF_ALL // len(files))
    wanted = {report.names.number(name): at for at, one in enumerate(files)
        for name in (one.file, *one.also)}
    plots = [Plot(most) for _ in files]
    sums = np.zeros((len(files), 5), np.int64)
    traced = [step for step in report.steps if has_calls(step)]
    for step, segment in zip(traced, axis.segments):
        shift = segment.from_ns - span_of(step).first_ns
        found = _of_step(step.data, report.names, step.members, wanted, len(files), shift, most)
        for plot, marks, cells in zip(plots, *found[:2]):
            plot.cells = cells or plot.cells
            plot.add(marks)
        sums += found[2]
    return [
        FilePlot(one.file, marks, plot.cells, (reads, writes), (read, written), unknown)
        for one, plot, (reads, writes, read, written, unknown) in zip(files, plots, sums.tolist())
        if len(marks := plot.marks())
    ]


def _chosen(report: Report, pattern: str | None) -> list[FileTotals]:
    def is_wanted(one: FileTotals) -> bool:
        return pattern is None or any(matches(name, pattern) for name in (one.file, *one.also))

    moved = [one for one in files_of(report) if one.bytes and is_wanted(one)]
    most = MOST_FILES if pattern is None else MOST_CHOSEN
    return sorted(moved, key=lambda one: (-one.ns, one.file))[:most]


@pass_over_records
def _of_step(
    data: StepData, names: NameTable, members: np.ndarray, wanted: dict[int, int], files: int,
    shift_ns: int, most: int,
) -> tuple[list[Marks], list[Cells | None], np.ndarray]:  # fmt: skip
    """By file: marks, cells, and sums (reads, writes, bytes read, bytes written, unknown)."""
    plots = [Plot(most) for _ in range(files)]
    sums = np.zeros((files, 5), np.int64)
    ranks = np.array([one.number for one in data.members], np.int64)
    for index, (file, line) in enumerate(zip(data.files, data.lines)):
        plot_of = _places(data.name_numbers[index], wanted)
        if not (plot_of >= 0).any():
            continue
        first = data.first_member(index)
        chosen = members[first : first + len(file.processes)]
        for batch in read_transfers(file, line.native(), plot_of >= 0, chosen):
            rank = ranks[first + batch["process"]]
            _take(batch, plot_of[batch["text"]], rank, shift_ns, plots, sums)
    return [plot.marks() for plot in plots], [plot.cells for plot in plots], sums


def _places(numbers: np.ndarray, wanted: dict[int, int]) -> np.ndarray:
    """The plot of each name, -1 none."""
    keys = np.array(sorted(wanted), np.int64)
    at = np.minimum(np.searchsorted(keys, numbers), len(keys) - 1)
    return np.where(keys[at] == numbers, np.array([wanted[key] for key in keys.tolist()])[at], -1)


def _take(own: Events, of: np.ndarray, rank: np.ndarray, shift_ns: int, plots: Sequence[Plot],
        sums: np.ndarray) -> None:
    begin = np.maximum(own["begin_ns"] + shift_ns, 0)
    way = own["way"].astype(np.int64)
    marks = Marks(way, rank, begin, begin + own["length_ns"], own["offset"],
        own["offset"] + own["bytes"], np.ones(len(way), np.int64))
    is_known = own["offset"] >= 0
    np.add.at(sums, (of, way), 1)
    np.add.at(sums, (of, 2 + way), own["bytes"])
    np.add.at(sums, (of, 4), ~is_known)
    for at in np.unique(of[is_known]).tolist():
        plots[at].add(marks.of(np.flatnonzero(is_known & (of == at))))
