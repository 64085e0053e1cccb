# SPDX-License-Identifier: Apache-2.0
"""``weir export``"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from weir.cli._options import Dask, Exclude, Include, Rank, reader_of

FORMS = ("parquet", "csv", "perfetto", "totals")

Run = Annotated[str, typer.Argument(metavar="RUN",
    help="Directory of the run, or of one of its steps.")]
To = Annotated[
    str,
    typer.Option("--to", metavar="FORM",
        help="parquet or csv (directories of tables), perfetto (a timeline), totals (Darshan's "
             "counters as text)."),
]
Output = Annotated[
    str | None, typer.Option("--output", "-o", metavar="OUT",
        help="Directory or file to create; without it totals go to standard output.")
]
Step = Annotated[str | None, typer.Option("--step", metavar="NAME", help="Only this step.")]
Tables = Annotated[
    str | None,
    typer.Option("--tables", metavar="LIST",
        help="For parquet and csv: only these tables, e.g. events,files."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress on standard error.")]


def export(
    run: Run, to: To, output: Output = None, step: Step = None, rank: Rank = None,
    tables: Tables = None, quiet: Quiet = False,
    exclude: Exclude = None, include: Include = None, dask: Dask = None,
) -> None:
    """Write a run in a format that other tools read. Memory does not depend on the run's size.

    Parquet and CSV have the tables of `weir query`; events in Parquet are partitioned by step and
    node. Perfetto's traces open in its viewer and its trace processor. Status 4 when the trace is
    incomplete: the complete parts are written all the same.
    """
    from weir._errors import UsageError
    from weir.analysis.exclusion import exclusion_of
    from weir.query import open_run
    from weir.query._arrow import pyarrow_without_pandas
    from weir.report.processes.compute import is_complete

    if to not in FORMS:
        raise UsageError(f"--to {to}: choose one of {', '.join(FORMS)}")
    if output is None and to != "totals":
        raise UsageError(f"--to {to}: say where with -o")
    if tables is not None and to not in ("parquet", "csv"):
        raise UsageError(f"--tables chooses tables of parquet and csv, not of {to}")
    left_out = exclusion_of(exclude, include)
    if to in ("parquet", "csv"):
        pyarrow_without_pandas()
    with (
        reader_of(dask) as reader,
        open_run(run, step=step, rank=rank, reader=reader, exclusion=left_out) as opened,
        _Progress(opened, quiet or to == "totals") as progress,
    ):
        if to in ("parquet", "csv"):
            _tables(opened, to, str(output), tables, progress)
        else:
            _one_file(opened, to, output, progress)
        if not is_complete(opened.report):
            _say_incomplete(opened)
            raise typer.Exit(4)


def _tables(opened: Any, to: str, output: str, tables: str | None,
        progress: Callable[[int], None]) -> None:
    from weir._errors import UsageError
    from weir.export import export_csv, export_parquet
    from weir.export.files import STORED
    from weir.report.registry import no_such_table

    wanted = STORED if tables is None else tuple(name.strip() for name in tables.split(","))
    unknown = [name for name in wanted if name not in STORED]
    if unknown:
        raise UsageError(no_such_table(unknown, STORED))
    (export_parquet if to == "parquet" else export_csv)(opened, output, wanted, progress)


def _one_file(opened: Any, to: str, output: str | None, progress: Callable[[int], None]) -> None:
    import codecs
    import os

    from weir._errors import UsageError
    from weir.export import export_perfetto, export_totals
    from weir.query.output import open_output

    if output is not None and os.path.isfile(output):
        raise UsageError(f"{output}: exists already; name another path with -o, or remove it")
    with open_output(output) as stream:
        if to == "perfetto":
            export_perfetto(opened.report, stream, progress)
            return
        # it does not close standard output when it goes
        export_totals(opened.report, codecs.getwriter("utf-8")(stream))


class _Progress:
    """Records written so far, on a terminal; nothing elsewhere."""

    def __init__(self, opened: Any, is_quiet: bool):
        import sys
        from dataclasses import replace

        self.count = sum(m.process.events for step in opened.report.steps
            for m in step.data.members if replace(step.choice, everything=True).takes(m))
        self.is_quiet = is_quiet or not sys.stderr.isatty()

    def __enter__(self) -> Callable[[int], None]:
        if self.is_quiet:
            return lambda _: None
        from rich.console import Console
        from rich.progress import Progress

        self.bar = Progress(console=Console(stderr=True), transient=True)
        self.bar.start()
        rank = self.bar.add_rank("records", total=self.count)
        return lambda rows: self.bar.advance(rank, rows)

    def __exit__(self, *_: object) -> None:
        if not self.is_quiet:
            self.bar.stop()


def _say_incomplete(opened: Any) -> None:
    import sys

    from weir.report.notes import notes

    for sentence in notes(opened.report):
        print(f"weir: {sentence}", file=sys.stderr)
