# SPDX-License-Identifier: Apache-2.0
"""What is wrong with rules, each mistake with its place and the line it stands in.

Readers collect mistakes instead of raising at the first, so that a file is mended in one go.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from weir._errors import UsageError


@dataclass(frozen=True, order=True)
class Place:
    """A file (or IOBUF_PARAMS), a line and a column, both from 1."""

    file: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Mistake:
    """``text`` is the line at the place, without its end."""

    place: Place
    message: str
    text: str = ""

    def __str__(self) -> str:
        if not self.text:
            return f"{self.place}: {self.message}"
        shown, column = _shown(self.text, self.place.column)
        return f"{self.place}: {self.message}\n    {shown}\n    {' ' * (column - 1)}^"


class RulesError(UsageError):
    """The rules that were given cannot be used; ``mistakes`` says all that is wrong."""

    def __init__(self, mistakes: Iterable[Mistake]):
        self.mistakes = tuple(sorted(mistakes, key=lambda m: m.place))
        super().__init__("\n".join(str(m) for m in self.mistakes))


class Wrong(Exception):
    """Raised by parsers of one value: the message, and how many characters into the value the
    mistake lies."""

    def __init__(self, message: str, offset: int = 0):
        super().__init__(message)
        self.message = message
        self.offset = offset


_WIDEST = 110


def _shown(text: str, column: int) -> tuple[str, int]:
    """A line and a column of it as they can be printed: tabs and control characters as blanks, and
    the part around the column."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    if len(printable) <= _WIDEST:
        return printable, column
    begin = max(0, min(column - 1 - _WIDEST // 2, len(printable) - _WIDEST))
    part = printable[begin : begin + _WIDEST]
    if begin:
        part = "..." + part[3:]
    if begin + _WIDEST < len(printable):
        part = part[:-3] + "..."
    return part, column - begin


def near(word: str, known: Iterable[str]) -> str:
    """``; did you mean x?`` for a word that resembles a known one, or nothing."""
    found = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return f"; did you mean {found[0]}?" if found else ""


def listed(words: Iterable[str], last: str = "or") -> str:
    """``a, b or c``"""
    *most, end = list(words)
    return f"{', '.join(most)} {last} {end}" if most else end
