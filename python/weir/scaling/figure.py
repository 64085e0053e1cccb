# SPDX-License-Identifier: Apache-2.0
"""Speed-up curves as a picture (PNG), by matplotlib: a chart for each program or file system, with
the point at which each curve stops scaling."""

from __future__ import annotations

import importlib.util
import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from weir._errors import StorageError, UsageError
from weir._files import complete_file
from weir.scaling.compute import Curve, Scaling

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = 3
_COLOURS, _IDEAL, _STOP = ("#1f5fa8", "#e8871a"), "#98a3b0", "#b03a10"


def check_drawable(path: str | os.PathLike[str]) -> None:
    """Raises UsageError without matplotlib: before a benchmark, not at its end."""
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError(f"{path}: a PNG needs matplotlib: pip install 'weir-io[figures]'; or write "
                         f"a page for a browser (--html)")


def write_figure(found: Mapping[str, Scaling], path: str | os.PathLike[str]) -> None:
    """Charts by heading, with the same axes. Raises UsageError without matplotlib, StorageError."""
    check_drawable(path)
    from matplotlib.figure import Figure

    columns = min(_COLUMNS, len(found))
    rows = math.ceil(len(found) / columns)
    figure = Figure(figsize=(1.2 + 4 * columns, 0.4 + 3.4 * rows), layout="constrained")
    charts = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flat
    for chart, (heading, one) in zip(charts, found.items()):
        _draw(chart, heading, one)
    for chart in list(charts):
        chart.remove()
    write_drawn(figure, path)


def _draw(chart: Axes, heading: str, found: Scaling) -> None:
    ranks = sorted({point.run.ranks for curve in found.curves for point in curve.points})
    first = found.reference.ranks
    chart.plot(ranks, [count / first for count in ranks], "--", color=_IDEAL, label="ideal")
    for curve, colour in zip(found.curves, _COLOURS):
        _draw_curve(chart, curve, colour)
    chart.set_xscale("log", base=2)
    chart.set_yscale("log", base=2)
    chart.set_xticks(ranks, [str(count) for count in ranks])
    chart.minorticks_off()
    chart.yaxis.set_major_formatter("{x:g}")
    chart.grid(color="#e4e8ee")
    chart.set(title=heading, xlabel="ranks", ylabel=f"speed-up against {first} rank"
        + "s" * (first != 1))
    chart.legend(fontsize="small", loc="upper left")


def _draw_curve(chart: Axes, curve: Curve, colour: str) -> None:
    along = [point.run.ranks for point in curve.points]
    speedups = [point.speedup for point in curve.points]
    name = curve.placement or "speed-up"
    if curve.stop is not None:
        at = curve.stop.before.ranks
        name += f", stops scaling at {at} rank" + "s" * (at != 1)
        speedup = next(point.speedup for point in curve.points if point.run is curve.stop.before)
        chart.plot([at], [speedup], "o", markersize=11, markerfacecolor="none",
            markeredgecolor=_STOP, markeredgewidth=1.8)
    chart.plot(along, speedups, "o-", color=colour, label=name)


def write_drawn(figure: Any, path: str | os.PathLike[str]) -> None:
    """A figure of matplotlib as PNG. Raises StorageError."""
    try:
        with complete_file(path) as file:
            figure.savefig(file, format="png", dpi=110)
    except OSError as error:
        raise StorageError(f"{path}: the picture cannot be written: {error.strerror or error}; "
                           f"name a file in a directory that you may write to") from error
