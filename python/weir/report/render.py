# SPDX-License-Identifier: Apache-2.0
"""Prints a report: plain text for files and pipes, Rich for terminals. Both print the same tables
from the same cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from shutil import get_terminal_size
from typing import TYPE_CHECKING, TextIO

from weir.report.frame.build import Report
from weir.report.frame.kind import Options
from weir.report.frame.table import Table, styled_lines, text_lines, wrapped
from weir.report.notes import notes
from weir.report.overview import notes_below, overview
from weir.report.registry import report_tables
from weir.report.sentences import is_grave

if TYPE_CHECKING:
    from rich.console import Console


def report_parts(report: Report, options: Options) -> tuple[list[str], Iterator[Table | str]]:
    """Notes without which the figures mislead, then tables as they were asked for with all other
    notes below. The overview has the notes in it."""
    if not options.tables:
        return [], overview(report, options)
    found = notes(report)
    below = notes_below(found, options)
    return list(filter(is_grave, found)), chain(report_tables(report, options), below)


def render_text(report: Report, stream: TextIO, options: Options = Options()) -> None:
    """Print to a file or pipe: no colours, no box lines, columns aligned with blanks."""
    write_text(*report_parts(report, options), stream, options.width)


def screen_width() -> int:
    """Columns of the terminal, or of COLUMNS; 80 of a file or pipe."""
    return get_terminal_size((80, 24)).columns


def write_text(
    sentences: Sequence[str], parts: Iterable[Table | str], stream: TextIO, width: int
) -> None:
    """Notes and tables, as render_text prints them."""
    for sentence in sentences:
        stream.write("\n".join(wrapped(f"note: {sentence}", width)) + "\n")
    for part in parts:
        if isinstance(part, str):
            stream.write(_fitted(part, width) + "\n")
        else:
            stream.write("\n" + "\n".join(text_lines(part, width)) + "\n")


def _fitted(text: str, width: int) -> str:
    return "\n".join(short for line in text.split("\n") for short in wrapped(line, width))


def write_parts(sentences: Sequence[str], parts: Iterable[Table | str], stream: TextIO) -> None:
    """Notes and tables, to a file or pipe as plain text, to a terminal with Rich."""
    if not stream.isatty():
        write_text(sentences, parts, stream, screen_width())
        return
    from rich.console import Console

    write_rich(sentences, parts, Console(file=stream), screen_width())


def render_rich(report: Report, console: Console, options: Options = Options()) -> None:
    """Print to a terminal."""
    write_rich(*report_parts(report, options), console, options.width)


_STYLES = {"title": "bold", "head": "dim", "total": "bold", "remark": "dim"}


def write_rich(
    sentences: Sequence[str], parts: Iterable[Table | str], console: Console, width: int
) -> None:
    """Notes and tables, as render_rich prints them."""
    from rich.text import Text

    for sentence in sentences:
        grave = "INCOMPLETE:" in sentence or "damaged:" in sentence
        style = "bold red" if grave else "yellow"
        for line in wrapped(f"note: {sentence}", width):
            console.print(Text(line, style=style), soft_wrap=True)
    for part in parts:
        if isinstance(part, str):
            console.print(Text(_fitted(part, width)), soft_wrap=True)
            continue
        console.print()
        for kind, line in styled_lines(part, width):
            console.print(Text(line, style=_STYLES.get(kind, "")), soft_wrap=True)
