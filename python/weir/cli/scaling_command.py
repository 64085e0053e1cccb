# SPDX-License-Identifier: Apache-2.0
"""``weir scaling``"""

from __future__ import annotations

from typing import Annotated

import typer

from weir.cli._options import Exclude, Include

Runs = Annotated[list[str], typer.Argument(metavar="RUN...",
    help="Runs of one program on different numbers of ranks or nodes.")]
Step = Annotated[str | None, typer.Option("--step", metavar="NAME",
    help="Only this step of each run.")]
Phases = Annotated[str | None, typer.Option("--phases", metavar="FILE",
    help="TOML file that defines phases by files or barriers; or wrf, cm1, mpas, icon, nemo.")]
Gain = Annotated[
    float, typer.Option("--stop-share", min=0, max=1, metavar="SHARE",
        help="Scaling stops where more ranks gain less than this share (0 to 1) of the ideal gain.")
]
Html = Annotated[str | None, typer.Option("--html", metavar="FILE",
    help="Write the curves as one self-contained page for a browser instead of printing.")]
Png = Annotated[str | None, typer.Option("--png", metavar="FILE",
    help="Draw the curves as a picture instead of printing (needs matplotlib).")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON: a stable interface.")]


def scaling(
    runs: Runs,
    step: Step = None,
    phases: Phases = None,
    stop: Gain = 0.25,
    json: Json = False,
    html: Html = None,
    png: Png = None,
    exclude: Exclude = None,
    include: Include = None,
) -> None:
    """Print speed-up and efficiency over several runs, where scaling stops, and which phase stops
    it.

    Runs with one rank on each node and runs with several are two curves. Status 4 when a trace is
    incomplete: the curve is printed all the same, and states what is missing.
    """
    import json as formats
    import sys

    from weir._errors import UsageError
    from weir.analysis.exclusion import exclusion_of
    from weir.report.waits.ready_made import named_rules
    from weir.scaling.table import read_scaling, render_scaling, scaling_json

    if (html is not None or png is not None) and json:
        raise UsageError(f"--html, --png: leave --json out, {html or png} is instead of it")
    rules = named_rules(phases) if phases is not None else ()
    found = read_scaling(
        runs, step=step, phase_rules=rules, stop_gain=stop, exclusion=exclusion_of(exclude, include)
    )
    if html is not None:
        from weir.report.html import write_page
        from weir.scaling.page import scaling_page

        size = write_page(scaling_page(found, stop), html)
        print(f"weir: {html}: {size / 1e6:.2f} MB, for any browser", file=sys.stderr)
    if png is not None:
        from weir.scaling.figure import write_figure

        write_figure({"": found}, png)
    if json:
        formats.dump(scaling_json(found), sys.stdout, indent=1)
        sys.stdout.write("\n")
    elif html is None and png is None:
        render_scaling(found, sys.stdout)
    if not found.is_complete:
        raise typer.Exit(4)
