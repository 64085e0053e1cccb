# SPDX-License-Identifier: Apache-2.0
"""A table as a title, columns and cells of text, and as lines; how it reaches the screen is left to
render."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Table:
    """Columns that begin with '<' are aligned left. groups: spans of columns with a heading of
    their own, by width."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    groups: tuple[tuple[str, int], ...] = ()
    footer: tuple[tuple[str, ...], ...] = ()
    remarks: tuple[str, ...] = field(default=())


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
        cells = (cell.ljust(width) if left else cell.rjust(width)
            for cell, width, left in zip(row, widths, is_left))
        yield "  ".join(cells).rstrip()
    yield from table.remarks
