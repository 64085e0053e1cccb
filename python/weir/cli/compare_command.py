# SPDX-License-Identifier: Apache-2.0
"""``weir compare``"""

from __future__ import annotations

from typing import Annotated

import typer

from weir.cli._options import Exclude, Include

RunA = Annotated[str, typer.Argument(metavar="RUN_A",
    help="Directory of the run to compare with, or of one of its steps.")]
RunB = Annotated[str, typer.Argument(metavar="RUN_B",
    help="Directory of the run to judge, or of one of its steps.")]
Step = Annotated[list[str] | None, typer.Option("--step", metavar="NAME",
    help="Only this step; may be given several times.")]
FailIf = Annotated[
    list[str] | None,
    typer.Option("--fail-if", metavar="TEST",
        help="Exit with status 1 if B is worse: seconds>1.1 (over 1.1 times A) or traj2:wall>+5 (5 "
             "s more in step traj2); repeatable."),
]
Top = Annotated[int, typer.Option("--top", min=0, metavar="N",
    help="Lines of tables of files (0: all).")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON: a stable interface.")]
Html = Annotated[str | None, typer.Option("--html", metavar="FILE",
    help="Write the comparison as one self-contained page for a browser instead of printing.")]
Everything = Annotated[bool, typer.Option("--all",
    help="Include system files, launchers, pipes, sockets, devices, /proc and /sys.")]


def compare(
    run_a: RunA,
    run_b: RunB,
    step: Step = None,
    fail_if: FailIf = None,
    top: Top = 20,
    json: Json = False,
    html: Html = None,
    everything: Everything = False,
    exclude: Exclude = None,
    include: Include = None,
) -> None:
    """Compare run B with run A: steps side by side, routines, and the files whose time, requests or
    bytes changed.

    Exit status 1: a test of --fail-if is true; 4: none is, but a trace is incomplete. A test names
    one of these figures: wall, active, path (I/O on the critical path), critical, seconds (I/O of
    all ranks), calls, bytes, files, seconds/rank, calls/rank, bytes/rank, imbalance.
    """
    import sys

    from weir._errors import UsageError
    from weir.analysis.exclusion import exclusion_of
    from weir.compare.compute import parse_threshold
    from weir.compare.table import compare as compared
    from weir.compare.table import comparison_json, render_comparison
    from weir.report.frame.build import build

    if html is not None and json:
        raise UsageError(f"--html {html}: leave --json out, the page is instead of it")
    thresholds = [parse_threshold(text) for text in fail_if or ()]
    exclusion = exclusion_of(exclude, include)
    run_a, run_b = (build(run, all=everything, exclusion=exclusion) for run in (run_a, run_b))
    made = compared(run_a, run_b, steps=step or (), thresholds=thresholds)
    if html is not None:
        from weir.compare.page import comparison_page
        from weir.report.html import write_page

        size = write_page(comparison_page(made, top or None), html)
        print(f"weir: {html}: {size / 1e6:.2f} MB, for any browser", file=sys.stderr)
    elif json:
        from json import dump

        dump(comparison_json(made), sys.stdout, indent=1)
        sys.stdout.write("\n")
    else:
        render_comparison(made, sys.stdout, top or None)
    for one in made.failed:
        measured = (
            f"B-A {one.value:+.6g}" if one.threshold.is_difference else f"B/A {one.value:.6g}"
        )
        print(f"weir: {one.step}: {one.threshold.text}: A {one.a:.6g}, B {one.b:.6g}, {measured}: "
              f"FAILED", file=sys.stderr)
    if made.failed:
        raise typer.Exit(1)
    if not made.is_complete:
        raise typer.Exit(4)
