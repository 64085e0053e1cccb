# SPDX-License-Identifier: Apache-2.0
"""The reference's four plots of ``weir bench scales``: elapsed time, throughput, speed-up and
efficiency against the number of PEs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weir.bench.scales import Row
from weir.scaling.figure import check_drawable, write_drawn

PANELS: tuple[tuple[str, Callable[[Row, float], float]], ...] = (
    ("elapsed time (s)", lambda row, serial: row.encoding["elapsed_s"].median),
    ("throughput (MB/s)", lambda row, serial: row.encoding["mb_s"].median),
    ("speed-up", lambda row, serial: serial / row.encoding["elapsed_s"].median),
    ("efficiency", lambda row, serial: serial / row.encoding["elapsed_s"].median / row.pes),
)


def write_plots(rows: Sequence[Row], path: str) -> None:
    """Of the files in one place. Raises UsageError without matplotlib, StorageError."""
    check_drawable(path)
    from matplotlib.figure import Figure

    there = [row for row in rows if row.encoding and row.place == rows[0].place]
    serial = next((row for row in there if row.method.is_single), None)
    figure = Figure(figsize=(11, 8.5), layout="constrained")
    charts = figure.subplots(2, 2).flat
    for number, (chart, (label, value)) in enumerate(zip(charts, PANELS)):
        if serial is None and number > 1:
            chart.remove()
            continue
        elapsed = serial.encoding["elapsed_s"].median if serial else 0.0
        for at, title in enumerate(dict.fromkeys(row.method.title for row in there)):
            own = [row for row in there if row.method.title == title]
            along = [row.pes for row in own]
            chart.plot(along, [value(row, elapsed) for row in own], "o-" if at < 10 else "s--",
                color=f"C{at % 10}", label=title)
        chart.set_xscale("log", base=2)
        ticks = sorted({row.pes for row in there})
        chart.set_xticks(ticks, [str(count) for count in ticks])
        chart.minorticks_off()
        chart.set_ylim(bottom=0)
        chart.grid(color="#e4e8ee")
        chart.set(xlabel="PEs", ylabel=label)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize="small")
    write_drawn(figure, path)
