# SPDX-License-Identifier: Apache-2.0
"""Rules in TOML: tables ``[[rule]]`` and ``[[hints]]``, each with its conditions and what it gives.
docs/guide/rules.md."""

from __future__ import annotations

import re
import sys
from typing import Any

from weir._errors import InputError, NotThere
from weir.rules.forms.fields import CONDITIONS, Words, parse_condition, parse_info
from weir.rules.forms.positions import Entry, Scanner, Table, Value, line_and_column
from weir.rules.mistakes import Mistake, Place, RulesError, Wrong, listed, near
from weir.rules.model import Conditions, Hints, Rule, RuleSet
from weir.rules.stack import StackError, condition_mistake, parse_stack

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FORTRAN = ("unit", "access", "form")
_MOST_SYNTAX_MISTAKES = 20
_LARGEST_FILE_BYTES = 4 << 20


def read_once(path: str) -> bytes:
    """All of a file of rules, which may be a pipe (`<(...)`). Raises InputError when it cannot be
    read."""
    try:
        with open(path, "rb") as file:
            data = file.read(_LARGEST_FILE_BYTES + 1)
    except FileNotFoundError as error:
        raise NotThere(f"{path}: there is no such file of rules") from error
    except OSError as error:
        raise InputError(f"{path}: the rules cannot be read: {error.strerror}") from error
    if len(data) > _LARGEST_FILE_BYTES:
        raise InputError(f"{path}: {_LARGEST_FILE_BYTES:,} bytes and more are no file of rules")
    return data


def decode_toml(data: bytes, path: str) -> RuleSet:
    """The rules in the bytes of a file. Raises RulesError with all mistakes."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise RulesError(
            [Mistake(Place(path, line, column), "this is not UTF-8, as TOML must be")]) from error
    return parse_toml(text.replace("\r\n", "\n"), path)


def parse_toml(text: str, file: str) -> RuleSet:
    """The same for a text; ``file`` is what messages call it."""
    return _Reader(text, file).read()


class _Reader:
    def __init__(self, text: str, file: str):
        self.text = text
        self.file = file
        self.lines = text.split("\n")
        self.mistakes: list[Mistake] = []

    def read(self) -> RuleSet:
        document, text = self._load()
        broken = bool(self.mistakes)
        rules: list[Rule] = []
        hints: list[Hints] = []
        tables = Scanner(text).tables() if document is not None else []
        for table in tables:
            if table.path in (("rule",), ("hints",)) and not self._is_list(table, document):
                continue
            if table.path == ("rule",):
                rules += self._rule(table, _next(document, "rule"), broken)
            elif table.path == ("hints",):
                hints += self._hints(table, _next(document, "hints"), broken)
            elif not broken:
                self._unknown_table(table)
        if self.mistakes:
            raise RulesError(self.mistakes)
        return RuleSet(tuple(rules), tuple(hints), origins=(self.file,))

    def _load(self) -> tuple[dict[str, Any] | None, str]:
        """The document; lines that are no TOML become mistakes and are taken for empty, so that
        others are found as well."""
        text, last = self.text, 0
        for _ in range(_MOST_SYNTAX_MISTAKES):
            try:
                return tomllib.loads(text), text
            except tomllib.TOMLDecodeError as error:
                message, line, column = _syntax_error(str(error), text)
                if line <= last:
                    break
                self._mistake_at(line, column, message)
                last = line
                lines = text.split("\n")
                # so that all that follows keeps its offset
                lines[line - 1] = " " * len(lines[line - 1])
                text = "\n".join(lines)
        return None, text

    def _mistake_at(self, line: int, column: int, message: str) -> None:
        shown = self.lines[line - 1] if line <= len(self.lines) else ""
        self.mistakes.append(Mistake(Place(self.file, line, column), message, shown))

    def _mistake(self, offset: int, message: str) -> None:
        self._mistake_at(*line_and_column(self.text, offset), message)

    def _place(self, table: Table) -> Place:
        return Place(self.file, *line_and_column(self.text, table.at))

    def _is_list(self, table: Table, document: dict[str, Any] | None) -> bool:
        name = table.path[0]
        if document is None or isinstance(document.get(name), list):
            return True
        self._mistake(table.at, f"write [[{name}]], with two brackets, for each of them")
        return False

    def _unknown_table(self, table: Table) -> None:
        if not table.path:
            for entry in table.entries:
                if len(entry.path) == 1:
                    self._mistake(entry.at,
                        f"{entry.path[0]} stands in no table: begin one with [[rule]] or [[hints]]")
            return
        name = ".".join(table.path)
        if table.path[0] in ("rule", "hints"):
            message = f"{name}: a {table.path[0]} has no tables in it"
        else:
            message = f"there is no table {name!r}" + (near(name, ("rule", "hints"))
                or ": there are [[rule]] and [[hints]]")
        self._mistake(table.at, message)

    def _rule(self, table: Table, values: dict[str, Any] | None, broken: bool) -> list[Rule]:
        before = len(self.mistakes)
        when = self._conditions(table, values, ("stack",))
        stack = None
        entry = _entry(table, "stack")
        if entry is None and not broken:
            self._mistake(table.at, "this rule has no stack; stack = \"none\" leaves files alone")
        elif entry is not None and values is not None:
            stack = self._stack(entry, values["stack"])
            wrong = condition_mistake(when, stack or ())
            if wrong:
                self._mistake(entry.at, wrong)
        return [Rule(self._place(table), when, stack)] if len(
            self.mistakes) == before and stack else []

    def _stack(self, entry: Entry, value: Any) -> Any:
        if not isinstance(value, str):
            self._mistake(entry.value.at,
                'a stack is a text, as in stack = "event | bufa:256:2 | event | system"')
            return None
        try:
            return parse_stack(value)
        except StackError as error:
            for wrong in error.wrongs:
                self._mistake(entry.value.offset(wrong.offset), wrong.message)
            return None

    def _hints(self, table: Table, values: dict[str, Any] | None, broken: bool) -> list[Hints]:
        before = len(self.mistakes)
        pairs: list[tuple[str, str]] = []
        own = [e for e in table.entries if e.path[0] not in CONDITIONS]
        when = self._conditions(table, values, tuple(e.path[0] for e in own))
        for entry in own:
            if len(entry.path) == 1 and values is not None:
                pairs += self._info(entry, values[entry.path[0]])
        keys = [key for key, _ in pairs]
        for key in sorted({k for k in keys if keys.count(k) > 1}):
            self._mistake(table.at, f"the hint {key} is given twice")
        if not own and not broken:
            self._mistake(table.at,
                "these hints say nothing: add keys such as striping_factor = 16")
        return [Hints(self._place(table), when, tuple(pairs))] if len(
            self.mistakes) == before else []

    def _info(self, entry: Entry, value: Any) -> list[tuple[str, str]]:
        key = entry.path[0]
        if len(key) > 2 and (meant := near(key, CONDITIONS)):
            self._mistake(entry.at,
                f"there is no key {key!r}{meant} A hint of that name is written info = "
                f"\"{key}=...\"")
            return []
        if isinstance(value, bool):
            value = "true" if value else "false"
        if isinstance(value, (dict, list, float)) or not isinstance(value, (str, int)):
            self._mistake(entry.value.at, f"the hint {key} is a text or a whole number")
            return []
        try:
            return list(parse_info(value)) if key == "info" and isinstance(value,
                str) else [_pair(key, str(value))]
        except Wrong as wrong:
            self._mistake(entry.value.offset(wrong.offset) if entry.value.characters
                else entry.value.at, wrong.message)
            return []

    def _conditions(self, table: Table, values: dict[str, Any] | None,
            others: tuple[str, ...]) -> Conditions:
        found: dict[str, Any] = {}
        for entry in table.entries:
            key = entry.path[0]
            if key in others:
                continue
            if key not in CONDITIONS:
                known = (*CONDITIONS, "stack")
                self._mistake(entry.at, f"a rule has no key {key!r}" + (near(key, known)
                    or f": its keys are {listed(known, 'and')}"))
            elif table.path == ("hints",) and key in FORTRAN:
                self._mistake(entry.at,
                    f"MPI_File_open has no {key}: hints are for "
                    f"{listed(k for k in CONDITIONS if k not in FORTRAN)}")
            elif len(entry.path) == 1 and values is not None:
                self._condition(entry, values[key], found)
        low, high = found.get("min_size"), found.get("max_size")
        if low is not None and high is not None and low > high:
            self._mistake(_entry(table, "max_size").value.at,
                "no file is both as large as min_size and as small as max_size")
        return Conditions(**found)

    def _condition(self, entry: Entry, value: Any, found: dict[str, Any]) -> None:
        key = entry.path[0]
        try:
            found[key] = parse_condition(key, _words(value, entry.value))
        except Wrong as wrong:
            self._mistake(wrong.offset, wrong.message)


def _words(value: Any, where: Value) -> Words:
    """The texts of a value, each with the document's offsets of its characters. Raises Wrong, with
    the document's offset."""
    if isinstance(value, list):
        if not value:
            raise Wrong("the list is empty: leave the key out to match everything", where.at)
        return [w for v, place in zip(value, where.elements, strict=True) for w in _words(v, place)]
    if isinstance(value, str):
        return [(value, where.offset)]
    if isinstance(value, int) and not isinstance(value, bool):
        return [(str(value), lambda _: where.at)]
    raise Wrong("this is neither a text nor a whole number", where.at)


def _pair(key: str, value: str) -> tuple[str, str]:
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", key):
        raise Wrong(f"{key!r} is not the name of a hint")
    if not value or "\0" in value:
        raise Wrong(f"the hint {key} has no value")
    return key, value


def _entry(table: Table, key: str) -> Entry | None:
    return next((e for e in table.entries if e.path == (key,)), None)


def _next(document: dict[str, Any], name: str) -> dict[str, Any] | None:
    """The next of an array of tables, in the order of the document."""
    tables = document.get(name)
    return tables.pop(0) if isinstance(tables, list) and tables else None


_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def _syntax_error(message: str, text: str) -> tuple[str, int, int]:
    found = _AT.search(message)
    lines = text.split("\n")
    said = _AT.sub("", message)
    if said.lower() == "illegal character '\\n'":
        said = "this text has no end on its line"
    said = f"TOML: {said[:1].lower()}{said[1:]}"
    if found and found[1]:
        return said, int(found[1]), int(found[2])
    last = max((i for i, line in enumerate(lines, 1) if line.strip()), default=1)
    return f"{said} at the end of the file", last, len(lines[last - 1]) + 1
