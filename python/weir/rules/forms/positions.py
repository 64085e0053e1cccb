# SPDX-License-Identifier: Apache-2.0
"""Where the keys and values of a TOML document stand.

tomllib reads the document and decides what it means; it keeps no positions. This scan goes over a
document that tomllib has accepted and finds, for each key, its line and column and those of each
character of its strings, so that a message can point into a value. (docs/decisions/0012)
"""

from __future__ import annotations

from dataclasses import dataclass, field

_BARE_END = set(" \t\r\n=.[]{},#\"'")
_ESCAPES = {"u": 4, "U": 8, "x": 2}
_LETTERS = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "e": "\x1b"}


@dataclass
class Value:
    """Offset of a value in the document; of each character, if it is a string; its elements, if it
    is an array."""

    at: int
    characters: list[int] = field(default_factory=list)
    elements: list[Value] = field(default_factory=list)

    def offset(self, character: int) -> int:
        """The document's offset of a character of a string, or of its end."""
        if not self.characters:
            return self.at
        return self.characters[min(character, len(self.characters) - 1)]


@dataclass
class Entry:
    """A key with its value."""

    path: tuple[str, ...]
    at: int
    value: Value


@dataclass
class Table:
    """``[[rule]]`` or the like with what stands in it; ``path`` is empty for what stands before the
    first."""

    path: tuple[str, ...]
    at: int
    entries: list[Entry] = field(default_factory=list)


class Scanner:
    """One pass over the text of a valid document."""

    def __init__(self, text: str):
        self.text = text
        self.at = 0

    def tables(self) -> list[Table]:
        found = [Table((), 0)]
        while self._skip_blank(lines=True):
            if self.text[self.at] == "[":
                start = self.at
                while self._peek() == "[":
                    self.at += 1
                found.append(Table(self._key(), start))
                while self._peek() == "]":
                    self.at += 1
            else:
                found[-1].entries += self._pair()
        return found

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _skip_blank(self, lines: bool) -> bool:
        """Over blanks and comments; whether anything is left."""
        while self.at < len(self.text):
            c = self.text[self.at]
            if c == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif c in " \t" or (lines and c in "\r\n"):
                self.at += 1
            else:
                return True
        return False

    def _key(self) -> tuple[str, ...]:
        words = []
        while True:
            self._skip_blank(lines=False)
            if self._peek() in ("'", '"') and self._peek():
                words.append(self._string(Value(self.at)))
            else:
                start = self.at
                while self._peek() and self._peek() not in _BARE_END:
                    self.at += 1
                words.append(self.text[start : self.at])
            self._skip_blank(lines=False)
            if self._peek() != ".":
                return tuple(words)
            self.at += 1

    def _pair(self) -> list[Entry]:
        start = self.at
        path = self._key()
        self.at += 1  # =
        self._skip_blank(lines=False)
        value = Value(self.at)
        inner = self._value(value)
        return [Entry(path, start, value), *(Entry(path + e.path, e.at, e.value) for e in inner)]

    def _value(self, value: Value) -> list[Entry]:
        """Over one value, which is filled in; the entries of an inline table."""
        c = self._peek()
        if c in ("'", '"') and c:
            self._string(value)
        elif c == "[":
            return self._array(value)
        elif c == "{":
            return self._inline_table()
        else:
            while self._peek() and self._peek() not in ",]}#\r\n":
                self.at += 1
        return []

    def _array(self, value: Value) -> list[Entry]:
        self.at += 1
        while self._skip_blank(lines=True) and self._peek() != "]":
            if self._peek() == ",":
                self.at += 1
                continue
            element = Value(self.at)
            self._value(element)
            value.elements.append(element)
        self.at += 1
        return []

    def _inline_table(self) -> list[Entry]:
        entries: list[Entry] = []
        self.at += 1
        while self._skip_blank(lines=True) and self._peek() != "}":
            if self._peek() == ",":
                self.at += 1
                continue
            entries += self._pair()
        self.at += 1
        return entries

    def _string(self, value: Value) -> str:
        quote = self.text[self.at]
        long = self.text.startswith(quote * 3, self.at)
        self.at += 3 if long else 1
        if long and self.text.startswith(("\n", "\r\n"), self.at):
            self.at += 2 if self._peek() == "\r" else 1
        end = quote * 3 if long else quote
        text = ""
        while self.at < len(self.text):
            if self.text.startswith(end, self.at) and not (long
                    and self.text.startswith(quote * 4, self.at)):
                break
            text += self._character(quote, value)
        value.characters.append(self.at)
        self.at += len(end)
        return text

    def _character(self, quote: str, value: Value) -> str:
        c = self.text[self.at]
        if c != "\\" or quote == "'":
            value.characters.append(self.at)
            self.at += 1
            return c
        kind = self.text[self.at + 1]
        # a line that goes on: nothing until the next character that is not blank
        if kind in " \t\r\n":
            self.at += 1
            while self._peek() and self._peek() in " \t\r\n":
                self.at += 1
            return ""
        value.characters.append(self.at)
        digits = _ESCAPES.get(kind, 0)
        code = self.text[self.at + 2 : self.at + 2 + digits]
        self.at += 2 + digits
        return chr(int(code, 16)) if digits else _LETTERS.get(kind, kind)


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Both from 1."""
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
