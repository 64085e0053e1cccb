# SPDX-License-Identifier: Apache-2.0
"""``weir watch``"""

from __future__ import annotations

from typing import Annotated

import typer


def watch(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Directory of the run, or of one of its steps.")],
    interval: Annotated[float, typer.Option("--interval", min=0.05, metavar="S", help="Seconds between looks.")] = 1.0,
    top: Annotated[int, typer.Option("--top", min=0, metavar="N", help="Files that are shown, on a terminal.")] = 15,
    wait: Annotated[float, typer.Option("--wait", min=0, metavar="S", help="Wait so many seconds for a run that is not there yet.")] = 0.0,
) -> None:
    """Show what a run is doing while it goes on: bytes and calls a second, ranks in I/O, files; where there is no terminal, a line a look.

    Reads the mapped trace, of which the program notices nothing; on the node where the job runs, or on any that sees the run's directory.
    Ends when all steps that are there have ended.
    """
    import sys

    from weir.watch import watch_lines, watch_screen
    from weir.watch.watch import wait_for

    watching = wait_for(run, wait)
    if sys.stdout.isatty():
        from rich.console import Console

        watch_screen(watching, interval, Console(), top)
    else:
        watch_lines(watching, interval, sys.stdout)
