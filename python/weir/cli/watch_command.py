# SPDX-License-Identifier: Apache-2.0
"""``weir watch``"""

from __future__ import annotations

from typing import Annotated

import typer


def watch(
    run: Annotated[str, typer.Argument(metavar="RUN",
        help="Directory of the run, or of one of its steps.")],
    interval: Annotated[float, typer.Option("--interval", min=0.05, metavar="S",
        help="Seconds between two updates.")] = 1.0,
    top: Annotated[int, typer.Option("--top", min=0, metavar="N",
        help="Number of files shown on a terminal.")] = 15,
    wait: Annotated[float, typer.Option("--wait", min=0, metavar="S",
        help="Wait up to S seconds for the run to appear.")] = 0.0,
) -> None:
    """Show bytes/s, calls/s, ranks in I/O and files of a run while it goes on.

    Without a terminal, prints a line for each update. Run it on any node that can read the run's
    directory. It does not disturb the program, and ends when all steps have ended.
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
