# SPDX-License-Identifier: Apache-2.0
"""``weir report``"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from weir.cli._options import Dask, Exclude, Include, Rank, reader_of

Run = Annotated[str, typer.Argument(metavar="RUN",
    help="Directory of the run, or of one of its steps.")]
Step = Annotated[str | None, typer.Option("--step", metavar="NAME",
    help="Only this step of the run.")]
Top = Annotated[int | None, typer.Option("--top", min=0, metavar="N",
    help="Lines of long tables (0: all). [default: 20; 10 files in the overview; 2000 rows in "
         "JSON]")]
Threshold = Annotated[float, typer.Option("--threshold-ms", min=0, metavar="T",
    help="Only files with at least T ms of I/O.")]
By = Annotated[str, typer.Option("--by", metavar="KEY",
    help="Sort files by time (in I/O), mb, rate (MB/s), calls or file (path).")]
Tables = Annotated[
    str | None, typer.Option("--tables", metavar="LIST",
        help="Print these tables instead of the overview, e.g. waits,flow; all: every one but "
             "those that list marks; list: print the names of tables alone.")
]
File = Annotated[str | None, typer.Option("--file", metavar="PATTERN",
    help="Only files whose path contains this word or matches this shell pattern.")]
Trace = Annotated[bool, typer.Option("--trace",
    help="Print one line for each recorded call instead of tables.")]
Op = Annotated[str | None, typer.Option("--op", metavar="OP",
    help="With --trace: only this operation, e.g. pwrite.")]
From = Annotated[float | None, typer.Option("--from", metavar="S",
    help="With --trace: from S seconds after the step's start.")]
To = Annotated[float | None, typer.Option("--to", metavar="S",
    help="With --trace: to S seconds after the step's start.")]
Json = Annotated[bool, typer.Option("--json",
    help="Print JSON: a stable interface; --top 0 prints the rows of all ranks and files.")]
Html = Annotated[str | None, typer.Option("--html", metavar="FILE",
    help="Write one self-contained page for a browser instead of printing.")]
Offsets = Annotated[str | None, typer.Option("--offsets", metavar="PATTERN",
    help="With --html: plot offset over time of files that match, instead of those with most "
         "I/O time.")]
Phases = Annotated[str | None, typer.Option("--phases", metavar="FILE",
    help="TOML file that defines phases by files or barriers; or wrf, cm1, mpas, icon, nemo.")]
Everything = Annotated[bool, typer.Option("--all",
    help="Include system files, launchers, pipes, sockets, devices, /proc and /sys.")]


def report(
    run: Run,
    step: Step = None,
    rank: Rank = None,
    top: Top = None,
    threshold_ms: Threshold = 0.0,
    by: By = "time",
    tables: Tables = None,
    file: File = None,
    trace: Trace = False,
    op: Op = None,
    t_from: From = None,
    t_to: To = None,
    json: Json = False,
    html: Html = None,
    offsets: Offsets = None,
    everything: Everything = False,
    phases: Phases = None,
    exclude: Exclude = None,
    include: Include = None,
    dask: Dask = None,
) -> None:
    """Print what matters most in a run that weir trace recorded, or the tables of --tables.

    Exit status 4: the trace is incomplete; the report is printed all the same, and begins with what
    is missing.
    """
    from weir._errors import UsageError
    from weir.analysis.exclusion import exclusion_of
    from weir.analysis.memory import collect_seldom, keep_one_heap, spill_arrays
    from weir.report import build
    from weir.report.files.compute import SORT_KEYS
    from weir.report.frame.kind import Options
    from weir.report.processes.compute import is_complete
    from weir.report.registry import named
    from weir.report.render import screen_width
    from weir.report.waits.ready_made import named_rules

    if by not in SORT_KEYS:
        raise UsageError(f"--by {by}: choose one of {', '.join(SORT_KEYS)}")
    if tables == "list":
        _print_kinds()
        return
    wanted = named(tables) if tables is not None else ()
    if not trace and (op, t_from, t_to) != (None, None, None):
        raise UsageError("--op, --from and --to choose trace lines: add --trace")
    if trace and json:
        raise UsageError("--trace prints lines, not JSON: leave one of --trace and --json out")
    has_choice = (top, threshold_ms, by, tables, file) != (None, 0.0, "time", None, None)
    _check_page(html, offsets, trace or json, has_choice)
    if t_from is not None and t_to is not None and t_from >= t_to:
        raise UsageError(
            f"--from {t_from:g} --to {t_to:g}: nothing lies between; --to must be the later")
    if op is not None:
        _check_op(op)
    rules = named_rules(phases) if phases is not None else ()
    options = Options(wanted, by, top, round(threshold_ms * 1e6), file, screen_width())
    collect_seldom()
    keep_one_heap()
    spill_arrays()
    with reader_of(dask) as reader:
        made = build(run, step=step, rank=rank, all=everything, phase_rules=rules, reader=reader,
                     exclusion=exclusion_of(exclude, include))
        if trace:
            _print_lines(made, file, op, t_from, t_to)
        else:
            _check_file(made, run, file)
            _show(made, options, json, html, offsets)
    if not is_complete(made):
        raise typer.Exit(4)


def _show(made: Any, options: Any, json: bool, html: str | None, offsets: str | None) -> None:
    if json:
        _print_json(made, options)
    elif html is not None:
        _write_page(made, html, offsets)
    else:
        _print_tables(made, options)


def _check_page(html: str | None, offsets: str | None, is_other: bool, has_choice: bool) -> None:
    from weir._errors import UsageError

    if html is not None and is_other:
        raise UsageError(
            f"--html {html}: leave --trace and --json out, the page is instead of them")
    if html is not None and has_choice:
        raise UsageError(
            f"--html {html}: the page has all tables, --step and --rank choose; leave --top, "
            f"--threshold-ms, --by, --tables, --file out")
    if offsets is not None and html is None:
        raise UsageError(f"--offsets {offsets}: the plots are on a page: add --html FILE")


def _check_op(op: str) -> None:
    from weir._errors import UsageError
    from weir.trace.ops import op_named

    try:
        op_named(op)
    except KeyError:
        raise UsageError(
            f"--op {op}: no such operation; names are those of the tables, e.g. read, fwrite, "
            f"open") from None


def _check_file(made: Any, run: str, pattern: str | None) -> None:
    """Raises NotThere where no file matches: empty tables would not say why."""
    from weir._errors import NotThere
    from weir.analysis.names import matches, shown
    from weir.report.files.compute import files_of
    from weir.report.frame.amounts import counted

    if pattern is None:
        return
    every = files_of(made)
    if not every:
        raise NotThere(f"--file {pattern}: {run} has no file names (recorded at levels detail and "
                       "trace)")
    if any(matches(name, pattern) for one in every for name in (one.file, *one.also)):
        return
    most = shown(max(every, key=lambda one: one.ns).file, made.cwd)
    some = "" if made.choice.everything else "; --all includes system files"
    raise NotThere(
        f"--file {pattern}: no path contains this word or matches this pattern; the run has "
        f"{counted(len(every), 'file')}, such as {most} (weir report {run} --tables files --top 0 "
        f"lists them{some})")


def _print_lines(made: Any, file: str | None, op: str | None, t_from: float | None,
        t_to: float | None) -> None:
    import itertools
    import sys

    from weir.report import trace_lines
    from weir.report.notes import notes

    for sentence in notes(made):
        print(f"weir: {sentence}", file=sys.stderr)
    lines = trace_lines(made, file=file, op=op, t_from=t_from, t_to=t_to,
        all=made.choice.everything)
    printed = 0
    chosen = [f"--{name} {value}" for name, value in
        (("file", file), ("op", op), ("from", t_from), ("to", t_to)) if value is not None]
    while some := list(itertools.islice(lines, 1000)):
        printed += len(some)
        sys.stdout.write("\n".join(some) + "\n")
    if not printed:
        levels = {step.level for step in made.steps}
        why = (
            f"no record fits {' '.join(chosen)}".rstrip()
            if "trace" in levels
            else f"level {', '.join(sorted(levels))} keeps no records; trace with --level trace"
        )
        print(f"weir: no lines: {why}", file=sys.stderr)


def _write_page(made: Any, path: str, offsets: str | None) -> None:
    import sys

    from weir.report.html import write_html

    size = write_html(made, path, offsets)
    print(f"weir: {path}: {size / 1e6:.2f} MB, for any browser", file=sys.stderr)


def _print_kinds() -> None:
    from weir.report.registry import KINDS

    for kind in KINDS:
        print(f"{kind.name:<12} {kind.shows}{'' if kind.in_all else ' (not printed by all)'}")


def _print_json(made: Any, options: Any) -> None:
    import sys

    from weir.report import report_json
    from weir.report.json import write_json

    write_json(report_json(made, options), sys.stdout)
    sys.stdout.write("\n")


def _print_tables(made: Any, options: Any) -> None:
    import sys

    from weir.report import render_rich, render_text

    if not sys.stdout.isatty():
        render_text(made, sys.stdout, options)
        return
    from rich.console import Console

    render_rich(made, Console(), options)
