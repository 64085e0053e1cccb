# SPDX-License-Identifier: Apache-2.0
"""``weir query``"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from weir.cli._options import Dask, Exclude, Include, Rank, reader_of

Run = Annotated[str, typer.Argument(metavar="RUN",
    help="Directory of the run, or of one of its steps.")]
Sql = Annotated[str | None, typer.Argument(metavar="SQL",
    help="The query, in DuckDB's SQL; - reads it from standard input.")]
Step = Annotated[str | None, typer.Option("--step", metavar="NAME", help="Only this step.")]
Format = Annotated[str, typer.Option("--format", metavar="FORMAT",
    help="table, csv, json (an array of objects) or parquet.")]
Output = Annotated[str | None, typer.Option("--output", "-o", metavar="FILE",
    help="Write to this file instead of standard output.")]
Top = Annotated[int, typer.Option("--top", min=0, metavar="N", help="Lines of a table (0: all).")]
Memory = Annotated[
    str | None, typer.Option("--memory", metavar="SIZE",
        help="Largest memory of the query, e.g. 512MB; above it temporary files are used.")
]
Schema = Annotated[bool, typer.Option("--schema",
    help="Print the tables and their columns with units.")]


def query(
    run: Run,
    sql: Sql = None,
    step: Step = None,
    rank: Rank = None,
    format: Format = "table",
    output: Output = None,
    top: Top = 1000,
    memory: Memory = None,
    schema: Schema = False,
    exclude: Exclude = None,
    include: Include = None,
    dask: Dask = None,
) -> None:
    """Query a run in SQL. Some of its tables: events, io, totals, files, steps, processes,
    critical, waits, phases, variables, failures, names, operations.

    --schema lists all tables with their columns. Records are not copied, so a trace may be larger
    than memory. Status 4 when the trace is incomplete: the answer is printed all the same.
    """
    import sys

    from weir._errors import UsageError
    from weir.analysis.exclusion import exclusion_of
    from weir.analysis.memory import collect_seldom, keep_one_heap, spill_arrays
    from weir.query import open_run
    from weir.query._arrow import duckdb, pyarrow_without_pandas
    from weir.query.output import FORMATS, open_output, print_schema, waiting, write_result
    from weir.report.processes.compute import is_complete

    if format not in FORMATS:
        raise UsageError(f"--format {format}: choose one of {', '.join(FORMATS)}")
    if schema == (sql is not None):
        raise UsageError("expected either SQL or --schema")
    if format == "parquet" and output is None and sys.stdout.isatty():
        raise UsageError("--format parquet writes bytes, not text: add -o FILE")
    left_out = exclusion_of(exclude, include)
    collect_seldom()
    keep_one_heap()
    spill_arrays()
    with _deferring_interrupts():
        pyarrow_without_pandas()
        if not schema:
            duckdb()
    with (
        reader_of(dask) as reader,
        open_run(run, step=step, rank=rank, memory=memory, reader=reader,
            exclusion=left_out) as opened,
    ):
        if schema:
            print_schema(sys.stdout)
            return
        question = sys.stdin.read() if sql == "-" else str(sql)
        with _interrupting(opened.interrupt), open_output(output) as stream, waiting(
                output is not None):
            write_result(opened.sql_reader(question), format, stream, top or None)
        _say(opened)
        if not is_complete(opened.report):
            raise typer.Exit(4)


@contextmanager
def _deferring_interrupts() -> Iterator[None]:
    """Libraries in C++ may abort the process when Ctrl-C is raised in the midst of their import."""
    import signal

    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


@contextmanager
def _interrupting(interrupt: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C ends a question at once: Python's own handler would run only when DuckDB comes back
    from it."""
    import os
    import select
    import signal
    import threading

    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def wait() -> None:
        pause = None
        # DuckDB forgets an interrupt that comes before it has begun: it is asked again until it has
        # ended.
        while not select.select([reader], [], [], pause)[0] or (came := os.read(reader, 1)):
            if pause is not None or came[0] == signal.SIGINT:
                interrupt()
                pause = 0.1
        os.close(reader)

    threading.Thread(target=wait, daemon=True).start()
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writer)


def _say(opened: Any) -> None:
    """What a reader of the answer must know, on standard error."""
    import sys

    from weir.report.notes import notes
    from weir.report.processes.compute import is_complete

    without = [step.name for step in opened.report.steps if step.level != "trace"]
    read = sorted({"events", "library_calls"} & opened.asked)
    if without and read:
        levels = ", ".join(f"{step.name}: {step.level}" for step in opened.report.steps
            if step.level != "trace")
        print(f"weir: {' and '.join(read)}: no rows of steps that were not recorded at level trace "
              f"({levels}); totals has them all", file=sys.stderr)
    if not is_complete(opened.report):
        for sentence in notes(opened.report):
            print(f"weir: {sentence}", file=sys.stderr)
