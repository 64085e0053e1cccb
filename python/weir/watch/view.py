# SPDX-License-Identifier: Apache-2.0
"""Looks at a run as a screen that renews itself, or as a line for each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from weir.analysis.names import shown
from weir.report.frame.figures import megabytes, percent, thousands
from weir.report.frame.table import Table, text_lines
from weir.watch.watch import Look, Watch

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


def looks(watch: Watch, interval_s: float) -> Iterator[Look]:
    """A look now and after each interval, the last one when the run is over."""
    while True:
        look = watch.look()
        yield look
        if look.is_over:
            return
        time.sleep(interval_s)


def watch_lines(watch: Watch, interval_s: float, stream: TextIO) -> None:
    """A line for each look, and one with the totals at the end."""
    for look in looks(watch, interval_s):
        for line in lines(look):
            stream.write(line + "\n")
        stream.flush()


def lines(look: Look) -> Iterator[str]:
    slowest = f", most time in {shown(look.files[0].file, None)}" if look.files else ""
    yield (
        f"{look.elapsed_s:.1f} s  {', '.join(look.steps) or 'ended'}: {len(look.active)} of "
        f"{look.ranks} ranks in I/O, "
        f"{megabytes(look.per_second(look.bytes_read)):.3f} MB/s read, "
        f"{megabytes(look.per_second(look.bytes_written)):.3f} MB/s written, "
        f"{look.per_second(look.calls):.0f} calls/s{slowest}"
    )
    if look.is_over:
        yield (
            f"over: {look.so_far.calls} calls, {megabytes(look.so_far.bytes):.3f} MB, "
            f"{look.so_far.seconds:.3f} s in I/O"
        )


def watch_screen(watch: Watch, interval_s: float, console: Console, top: int) -> None:
    """A screen that is renewed; its last state stays."""
    from rich.live import Live

    with Live(console=console, auto_refresh=False) as live:
        for look in looks(watch, interval_s):
            live.update(screen(look, top), refresh=True)
    for line in list(lines(look))[1:]:
        console.print(line, highlight=False)


def screen(look: Look, top: int) -> RenderableType:
    """Rates, ranks, and the files that took most time since the last look."""
    from rich.text import Text

    rates = Table(
        f"{', '.join(look.steps) or 'ended'}, {look.elapsed_s:.0f} s",
        ("MB/s read", "MB/s written", "calls/s", "ranks in I/O", "in I/O", "calls so far",
            "MB so far"),
        ((
            f"{megabytes(look.per_second(look.bytes_read)):.3f}",
            f"{megabytes(look.per_second(look.bytes_written)):.3f}",
            f"{look.per_second(look.calls):.0f}", f"{len(look.active)} of {look.ranks}",
            percent(look.ns / 1e9, look.seconds * max(1, look.ranks)), thousands(look.so_far.calls),
            f"{megabytes(look.so_far.bytes):.3f}",
        ),),
    )  # fmt: skip
    files = Table(
        "Files by time since the last look",
        ("ms", "MB/s read", "MB/s written", "calls/s", "<File"),
        tuple(
            (
                f"{one.ns / 1e6:.3f}", f"{megabytes(look.per_second(one.bytes_read)):.3f}",
                f"{megabytes(look.per_second(one.bytes_written)):.3f}",
                f"{look.per_second(one.calls):.0f}", shown(one.file, None),
            )
            for one in look.files[:top]
        ),
    )  # fmt: skip
    every = ((number, line) for table in (rates, files)
        for number, line in enumerate(text_lines(table)))
    styles = {0: "bold", 1: "dim"}
    return Text("\n").join([Text(line, styles.get(number, ""), no_wrap=True, overflow="ellipsis")
        for number, line in every])
