# SPDX-License-Identifier: Apache-2.0
"""Prints a report: plain text for files and pipes, Rich for terminals. Both print the same tables from the same cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from weir.report.build import Report
from weir.report.detail import detail_lines
from weir.report.flow import flow_tables, graph_tables, read_tables
from weir.report.mpi_io import mpi_io_tables, variable_table
from weir.report.notes import notes
from weir.report.output import output_tables
from weir.report.phases import phase_tables
from weir.report.tables import (
    Table, duration_table, file_system_table, file_table, layer_figure_table, layer_table, process_table, request_table, step_table, summary_table, unit_table,
)  # fmt: skip
from weir.report.waits import wait_tables

if TYPE_CHECKING:
    from rich.console import Console

TABLES = ("steps", "waits", "phases", "summary", "files", "requests", "durations", "units", "layers", "output", "mpi-io", "variables", "filesystems", "flow", "processes", "detail")
BY_NAME = ("graph", "reads")  # not among those that are printed when none is named
DEFAULT_TOP = 20
DEFAULT_DETAILS = 5


@dataclass(frozen=True)
class Options:
    """top None: the default of each table; 0: everything. tables: names of TABLES in the order in which they are printed."""

    tables: Sequence[str] = TABLES
    by: str = "msec"
    top: int | None = None
    threshold_ns: int = 0
    pattern: str | None = None

    @property
    def limit(self) -> int | None:
        return DEFAULT_TOP if self.top is None else self.top or None

    @property
    def file_limit(self) -> int | None:
        """Above a threshold all files are listed, unless a number is asked for."""
        return None if self.top is None and self.threshold_ns else self.limit


def report_tables(report: Report, options: Options) -> Iterator[Table | str]:
    """The tables that were asked for; plain lines (of details) as text."""
    for name in options.tables:
        if name not in _PARTS:
            raise ValueError(f"no table {name!r}; choose of {', '.join(_PARTS)}")
        is_empty = True
        for part in _PARTS[name](report, options):
            is_empty = False
            yield part
        if is_empty and tuple(options.tables) != TABLES:
            yield f"\n{name}: nothing to show; {_WHY_EMPTY.get(name, 'the run has none of it')}"


def _ranks(report: Report) -> list[int | None]:
    """The task that tables speak of, and then all of them when there are more."""
    if report.choice.rank is not None:
        return [report.choice.rank]
    every = {rank for step in report.steps for rank in step.ranks}
    return [0] if every == {0} else [0, None] if 0 in every else [None]


def _steps(report: Report, options: Options) -> Iterator[Table]:
    yield step_table(report)


def _waits(report: Report, options: Options) -> Iterator[Table]:
    yield from wait_tables(report, options.limit)


def _phases(report: Report, options: Options) -> Iterator[Table]:
    """Those between barriers only when they are asked for: a run may have thousands."""
    yield from phase_tables(report, options.limit, automatic=tuple(options.tables) != TABLES)


def _summary(report: Report, options: Options) -> Iterator[Table]:
    for step in report.steps:
        for rank in _ranks(report):
            if rank is None or rank in step.ranks:
                yield summary_table(step, rank)


def _files(report: Report, options: Options) -> Iterator[Table]:
    for rank in _ranks(report):
        yield file_table(
            report, rank, by=options.by, top=options.file_limit, threshold_ns=options.threshold_ns, pattern=options.pattern
        )


def _requests(report: Report, options: Options) -> Iterator[Table]:
    yield request_table(report)


def _durations(report: Report, options: Options) -> Iterator[Table]:
    yield duration_table(report)


def _units(report: Report, options: Options) -> Iterator[Table]:
    if report.units:
        yield unit_table(report, options.limit)


def _layers(report: Report, options: Options) -> Iterator[Table]:
    if report.layers:
        yield layer_table(report, options.limit)
        figures = layer_figure_table(report, options.limit)
        if figures.rows:
            yield figures


def _output(report: Report, options: Options) -> Iterator[Table]:
    yield from output_tables(report)


def _mpi_io(report: Report, options: Options) -> Iterator[Table | str]:
    top = DEFAULT_DETAILS if options.top is None else options.limit
    yield from mpi_io_tables(report, pattern=options.pattern, top=top)
    if top is not None and len(report.mpi_files) > top:
        yield f"({top} of {len(report.mpi_files)} files: those with most bytes; --tables mpi-io --top 0 prints all)"


def _file_systems(report: Report, options: Options) -> Iterator[Table]:
    if report.file_systems:
        yield file_system_table(report)


def _variables(report: Report, options: Options) -> Iterator[Table]:
    if report.variables:
        yield variable_table(report, pattern=options.pattern, top=options.limit)


def _flow(report: Report, options: Options) -> Iterator[Table]:
    if len(report.steps) > 1 or tuple(options.tables) != TABLES:  # of one step only when asked for
        yield from flow_tables(report, options.limit, options.pattern)


def _graph(report: Report, options: Options) -> Iterator[Table]:
    yield from graph_tables(report, options.limit, options.pattern)


def _reads(report: Report, options: Options) -> Iterator[Table]:
    yield from read_tables(report, options.limit, options.pattern)


def _processes(report: Report, options: Options) -> Iterator[Table]:
    yield process_table(report, options.limit)


def _detail(report: Report, options: Options) -> Iterator[str]:
    rank = report.choice.rank if report.choice.rank is not None else _ranks(report)[0]
    for step in report.steps:
        who = "every task" if rank is None else f"task {rank}"
        yield f"\nDetail for {step.name}, {who}\n"
        yield from detail_lines(report, step, rank, pattern=options.pattern, top=DEFAULT_DETAILS if options.top is None else options.limit)


_PARTS = {
    "steps": _steps,
    "waits": _waits,
    "phases": _phases,
    "summary": _summary,
    "files": _files,
    "requests": _requests,
    "durations": _durations,
    "units": _units,
    "layers": _layers,
    "output": _output,
    "flow": _flow,
    "graph": _graph,
    "reads": _reads,
    "mpi-io": _mpi_io,
    "variables": _variables,
    "filesystems": _file_systems,
    "processes": _processes,
    "detail": _detail,
}


_WHY_EMPTY = {
    "waits": "waits are recorded of MPI programs, at level trace without --no-mpi",
    "phases": "there are no marks in the program, no rules that fit (--phases) and no barriers, or it was not recorded at level trace",
    "units": "no Fortran statement read or wrote",
    "layers": "no file had layers",
    "output": "nothing was written through libweir",
    "mpi-io": "no file was opened through MPI-IO",
    "variables": "no variable was read or written through PnetCDF, netCDF or HDF5",
}


def render_text(report: Report, stream: TextIO, options: Options = Options()) -> None:
    """Print to a file or pipe: no colours, no box lines, columns aligned with blanks."""
    write_text(notes(report), report_tables(report, options), stream)


def write_text(sentences: Sequence[str], parts: Iterable[Table | str], stream: TextIO) -> None:
    """Notes and tables, as render_text prints them."""
    for sentence in sentences:
        stream.write(f"note: {sentence}\n")
    for part in parts:
        if isinstance(part, str):
            stream.write(part + "\n")
        else:
            stream.write("\n" + "\n".join(text_lines(part)) + "\n")


def write_parts(sentences: Sequence[str], parts: Iterable[Table | str], stream: TextIO) -> None:
    """Notes and tables, to a file or pipe as plain text, to a terminal with Rich."""
    if not stream.isatty():
        write_text(sentences, parts, stream)
        return
    from rich.console import Console

    write_rich(sentences, parts, Console(file=stream))


def text_lines(table: Table) -> Iterator[str]:
    """A table as lines, trailing blanks removed."""
    heads = [column.lstrip("<") for column in table.columns]
    is_left = [column.startswith("<") for column in table.columns]
    every = [heads, *table.rows, *table.footer]
    widths = [max(len(row[i]) for row in every) for i in range(len(heads))]
    first = 0
    spans = []
    for text, count in table.groups:
        span = sum(widths[first : first + count]) + 2 * (count - 1)
        if len(text) > span:
            widths[first] += len(text) - span
            span = len(text)
        spans.append(text.center(span))
        first += count
    yield table.title
    if table.groups:
        yield "  ".join(spans).rstrip()
    for row in every:
        cells = (cell.ljust(width) if left else cell.rjust(width) for cell, width, left in zip(row, widths, is_left))
        yield "  ".join(cells).rstrip()
    yield from table.remarks


def render_rich(report: Report, console: Console, options: Options = Options()) -> None:
    """Print to a terminal."""
    write_rich(notes(report), report_tables(report, options), console)


def write_rich(sentences: Sequence[str], parts: Iterable[Table | str], console: Console) -> None:
    """Notes and tables, as render_rich prints them."""
    from rich.text import Text

    for sentence in sentences:
        grave = "INCOMPLETE:" in sentence or "damaged:" in sentence
        console.print(Text(f"note: {sentence}", style="bold red" if grave else "yellow"))
    for part in parts:
        if isinstance(part, str):
            console.print(Text(part), soft_wrap=True)
        else:
            _print_rich(part, console)


def _print_rich(table: Table, console: Console) -> None:
    from rich.text import Text

    lines = list(text_lines(table))
    body = len(lines) - len(table.remarks)
    console.print()
    heads = 3 if table.groups else 2
    for i, line in enumerate(lines):
        style = "bold" if i == 0 else "dim" if i < heads or i >= body else "bold" if i >= body - len(table.footer) else ""
        console.print(Text(line, style=style), soft_wrap=True)
