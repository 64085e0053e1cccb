# SPDX-License-Identifier: Apache-2.0
"""A table as a title, columns and cells of text, and as lines that fit a width; how it reaches the
screen is left to render."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from weir.report.frame.amounts import fitted

LEAST_TEXT = 20  # columns that a text keeps when it is shortened
_GAP = 2  # blanks between columns


@dataclass(frozen=True)
class Table:
    """Columns that begin with '<' are aligned left. groups: spans of columns with a heading of
    their own, by width. remarks: below the table, a sentence each. whole: columns of `columns`
    whose texts are never shortened: names that are looked up. keys: those that every part of a wide
    table has, beside its longest text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    groups: tuple[tuple[str, int], ...] = ()
    footer: tuple[tuple[str, ...], ...] = ()
    remarks: tuple[str, ...] = field(default=())
    whole: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


def text_lines(table: Table, width: int | None = None, is_split: bool = True) -> Iterator[str]:
    """A table as lines, trailing blanks removed; none is longer than `width`. is_split: else its
    rows are printed as they are, and only title and remarks are wrapped."""
    for _, line in styled_lines(table, width, is_split):
        yield line


def styled_lines(
    table: Table, width: int | None = None, is_split: bool = True
) -> Iterator[tuple[str, str]]:
    """The lines with what each is: title, head, row, total, remark, or "" (a blank line).

    Where the table is wider than `width`, its texts are shortened; where that is not enough, it is
    printed in blocks, each with all the texts."""
    for line in wrapped(table.title, width):
        yield "title", line
    blocks = [table] if width is None or not is_split else _blocks(table, width)
    for number, block in enumerate(blocks):
        if number:
            yield "", ""
        yield from _block_lines(block)
    for remark in table.remarks:
        for line in wrapped(remark, width):
            yield "remark", line


def wrapped(text: str, width: int | None) -> list[str]:
    """A sentence in lines of this width, the later ones indented. A word that is longer than a line
    stays whole, so that a path can be copied."""
    if width is None or len(text) <= width:
        return [text]
    return textwrap.wrap(text, width, subsequent_indent="  ", break_on_hyphens=False,
        break_long_words=False)


def _heads(table: Table) -> list[str]:
    return [column.lstrip("<") for column in table.columns]


def _is_left(table: Table) -> list[bool]:
    return [column.startswith("<") for column in table.columns]


def _widths(table: Table) -> list[int]:
    """Of the columns; a heading above several that is wider than they are widens the first."""
    every = [_heads(table), *table.rows, *table.footer]
    widths = [max(len(row[i]) for row in every) for i in range(len(table.columns))]
    first = 0
    for text, count in table.groups:
        span = sum(widths[first : first + count]) + _GAP * (count - 1)
        widths[first] += max(0, len(text) - span)
        first += count
    return widths


def _total(widths: list[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _block_lines(table: Table) -> Iterator[tuple[str, str]]:
    widths, is_left, columns = _widths(table), _is_left(table), iter(_widths(table))
    spans = [
        text.center(_total(list(islice(columns, count)))) for text, count in table.groups
    ]
    if any(text for text, _ in table.groups):
        yield "head", (" " * _GAP).join(spans).rstrip()
    lines = [("head", tuple(_heads(table)))]
    lines += [("row", row) for row in table.rows] + [("total", row) for row in table.footer]
    for kind, row in lines:
        cells = (cell.ljust(width) if left else cell.rjust(width)
            for cell, width, left in zip(row, widths, is_left))
        yield kind, (" " * _GAP).join(cells).rstrip()


def _blocks(table: Table, width: int) -> list[Table]:
    """The table itself where it fits; else with shorter texts, and then in parts that all have the
    texts, or the keys and the longest of these where they are many: a variable and its file."""
    short = _shortened(table, width, LEAST_TEXT)
    widths, longest = _widths(short), _widths(table)
    if _total(widths) <= width:
        return [short]
    texts = [at for at, left in enumerate(_is_left(table)) if left]
    if texts and sum(widths[at] + _GAP for at in texts) > width // 2:
        most = max(texts, key=lambda at: (table.columns[at] in table.whole, longest[at]))
        texts = [at for at in texts if at == most or table.columns[at] in table.keys]

    def fits(columns: list[int]) -> bool:
        return _total(_widths(_part(short, [*texts, *columns]))) <= width

    blocks: list[list[int]] = [[]]
    runs = _runs(table, texts)
    for columns in (part for run in runs for part in ([run] if fits(run) else [[n] for n in run])):
        if blocks[-1] and not fits([*blocks[-1], *columns]):
            blocks.append([])
        blocks[-1] += columns
    parts = [_part(table, [*texts, *block]) for block in blocks]
    return [_shortened(_shortened(part, width, LEAST_TEXT), width, 1) for part in parts]


def _runs(table: Table, texts: list[int]) -> Iterator[list[int]]:
    """Columns that stay together: those under one heading; `texts` are in every part."""
    first = 0
    for text, count in table.groups or [("", len(table.columns))]:
        numbers = [at for at in range(first, first + count) if at not in texts]
        yield from [numbers] if text and numbers else [[at] for at in numbers]
        first += count


def _part(table: Table, chosen: list[int]) -> Table:
    """Some of the columns, in their order."""
    kept, above = sorted(chosen), [group for text, n in table.groups for group in [text] * n]
    groups: list[tuple[str, int]] = []
    for text in (above[at] for at in kept if above):
        is_same = bool(groups) and groups[-1][0] == text
        groups[-1:] = [(text, groups[-1][1] + 1)] if is_same else [*groups[-1:], (text, 1)]
    rows, footer = (
        tuple(tuple(row[at] for at in kept) for row in every)
        for every in (table.rows, table.footer)
    )
    columns = tuple(table.columns[at] for at in kept)
    return replace(table, columns=columns, rows=rows, footer=footer, groups=tuple(groups))


def _shortened(table: Table, width: int, least: int) -> Table:
    """The widest texts shorter, down to `least`, as far as the table is too wide."""
    is_left, limits = _is_left(table), _widths(table)
    excess = _total(limits) - width
    heads = _heads(table)
    while excess > 0:
        can = [at for at, left in enumerate(is_left) if left
            and table.columns[at] not in table.whole and limits[at] > max(least, len(heads[at]))]
        if not can:
            break
        widest = max(can, key=lambda at: limits[at])
        second = max((limits[at] for at in can if at != widest), default=0)
        taken = min(excess, max(1, limits[widest] - max(second, least, len(heads[widest]))))
        limits[widest] -= taken
        excess -= taken

    def short(row: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_short(cell, limit) if left else cell
            for cell, limit, left in zip(row, limits, is_left))

    return replace(table, rows=tuple(map(short, table.rows)),
        footer=tuple(map(short, table.footer)))


def _short(text: str, width: int) -> str:
    """A path without its middle, a command without its end."""
    if len(text) <= width:
        return text
    if width < 8:
        return text[:width]
    return text[: width - 3] + "..." if " " in text else fitted(text, width)
