# SPDX-License-Identifier: Apache-2.0
"""The section of the page with a plot of offset over time for each of the files that matter."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np

from weir.analysis.names import shown
from weir.report.frame.amounts import amount, number, seconds
from weir.report.frame.build import Report
from weir.report.frame.section import Section, rendered
from weir.report.frame.table import Table
from weir.report.offsets.compute import FilePlot, offsets_of
from weir.report.offsets.marks import SEVERAL, Marks
from weir.report.timeline.page import timeline_of

_OTHER = (1 << 32) - 1  # in place of the place of a rank: several


def offsets(report: Report, pattern: str | None = None) -> Section | None:
    """None where single calls were not recorded, or no file moved bytes at known offsets."""
    axis = timeline_of(report)
    plots = offsets_of(report, axis, pattern) if axis is not None else []
    if not plots or axis is None:
        return None
    ranks = sorted({rank for step in report.steps for rank in step.ranks})  # for searchsorted
    unit = max(1, -(-axis.length_ns * 2 // (1 << 32)))  # of time: what 32 bits hold
    data = {
        "ranks": [report.names.ranks[one].for_page for one in ranks],
        "unit_ns": unit,
        "plots": [_description(plot) for plot in plots],
    }
    figures = [{"name": shown(plot.file, report.cwd), "path": plot.file, "said": _said(plot)}
        for plot in plots]
    body = rendered("offsets.j2", plots=figures, table=_table(report, plots))
    blobs = {str(at): packed(plot.marks, ranks, unit) for at, plot in enumerate(plots)}
    return Section("offsets", "Offset over time", body, data, blobs, "Offsets")


def _description(plot: FilePlot) -> dict[str, Any]:
    marks = plot.marks
    return {
        "marks": len(marks),
        "ways": np.unique(marks.way).tolist(),
        "from": int(marks.offset.min()),
        "until": int(marks.until.max()),
        "combined": plot.cells is not None,
    }


def _said(plot: FilePlot) -> str:
    """What a mark is."""
    drawn = int(plot.marks.count.sum())
    text = f"{number(drawn)} requests, each drawn"
    if plot.cells is not None:
        cell = f"{seconds((1 << plot.cells.time) / 1e9)} and {amount(1 << plot.cells.offset)}"
        text = (
            f"{number(drawn)} requests, combined into {number(len(plot.marks))} boxes: those that "
            f"begin within {cell} of one another are one box around them all"
        )
    if plot.unknown:
        text += (
            f"; {number(plot.unknown)} more have no known offset (files opened to append, several "
            "C streams on the file) and are left out"
        )
    return text


def packed(marks: Marks, ranks: list[int], unit_ns: int) -> str:
    """Columns behind one another, each byte by byte of all marks, deflated, base64: begin (less
    that of the mark before), length, offset, bytes, count, place of the rank, direction."""
    begin = marks.begin_ns // unit_ns
    end = -(-marks.end_ns // unit_ns)
    place = np.where(marks.rank == SEVERAL, _OTHER, np.searchsorted(ranks, marks.rank))
    columns = (
        np.diff(begin, prepend=0).astype("<u4"), np.minimum(end - begin, 2**32 - 1).astype("<u4"),
        marks.offset.astype("<u8"), (marks.until - marks.offset).astype("<u8"),
        np.minimum(marks.count, 2**32 - 1).astype("<u4"), place.astype("<u4"),
        marks.way.astype("u1"),
    )  # fmt: skip
    planes = [one.view("u1").reshape(len(marks), one.itemsize).T.tobytes() for one in columns]
    return base64.b64encode(zlib.compress(b"".join(planes), 6)).decode("ascii")


def _table(report: Report, plots: list[FilePlot]) -> Table:
    rows = tuple(
        (
            shown(plot.file, report.cwd), *map(str, plot.requests),
            *(f"{count / 1e6:.3f}" for count in plot.bytes),
            str(plot.unknown), str(int(plot.marks.offset.min())), str(int(plot.marks.until.max())),
        )
        for plot in plots
    )  # fmt: skip
    columns = ("<File", "reads", "writes", "MB read", "MB written", "no offset", "from byte",
        "to byte")
    return Table("Requests of the files of these plots", columns, rows)
