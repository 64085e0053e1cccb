# SPDX-License-Identifier: Apache-2.0
"""Prints a report: plain text for files and pipes, Rich for terminals. Both print the same tables
from the same cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from weir.report.frame.build import Report
from weir.report.frame.kind import Options
from weir.report.frame.table import Table, text_lines
from weir.report.notes import notes
from weir.report.overview import overview
from weir.report.registry import report_tables

if TYPE_CHECKING:
    from rich.console import Console


def report_parts(report: Report, options: Options) -> tuple[list[str], Iterator[Table | str]]:
    """Notes and tables as they were asked for. The overview has the notes in it."""
    if not options.tables:
        return [], overview(report, options)
    return notes(report), report_tables(report, options)


def render_text(report: Report, stream: TextIO, options: Options = Options()) -> None:
    """Print to a file or pipe: no colours, no box lines, columns aligned with blanks."""
    write_text(*report_parts(report, options), stream)


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


def render_rich(report: Report, console: Console, options: Options = Options()) -> None:
    """Print to a terminal."""
    write_rich(*report_parts(report, options), console)


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
        style = (
            "bold"
            if i == 0
            else "dim"
            if i < heads or i >= body
            else "bold"
            if i >= body - len(table.footer)
            else ""
        )
        console.print(Text(line, style=style), soft_wrap=True)
