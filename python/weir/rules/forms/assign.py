# SPDX-License-Identifier: Apache-2.0
"""Assignments, after Cray's assign(1): a file with a line ``assign -F bufa:256:2 f:trajgrid*`` for
each object.

Objects, and the order in which they are asked whatever the order of the lines: ``f:`` name, ``p:``
pattern, ``u:`` unit, ``g:su g:sf g:du g:df`` kinds of Fortran files, ``g:all``. What assign(1) had
no word for is said by long options.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weir.rules.forms.fields import CONDITIONS, parse_condition
from weir.rules.mistakes import Mistake, Place, RulesError, Wrong, listed, near
from weir.rules.model import Conditions, Layer, Rule, RuleSet
from weir.rules.stack import StackError, condition_mistake, parse_stack
from weir.rules.values import check_name, check_path, parse_ranges

OPTION_OF = {key: f"--{key.replace('_', '-')}" for key in CONDITIONS}
_KEY_OF = {option: key for key, option in OPTION_OF.items()}
KINDS = {
    "su": ("sequential", "unformatted"),
    "sf": ("sequential", "formatted"),
    "du": ("direct", "unformatted"),
    "df": ("direct", "formatted"),
}
_CRAYS = {
    "-a": "another name for the file", "-b": "a library buffer's size; say -F bufa:bs:n",
    "-s": "the structure of the file; say -F",
    "-u": "the number of buffers; say -F bufa:bs:n", "-n": "preallocation",
    "-N": "conversion of numbers", "-C": "conversion of characters",
    "-p": "partitions; say -F stripe:dirs=/a,/b", "-q": "preallocation", "-c": "contiguous space",
    "-t": "temporary files",
    "-D": "a descriptor", "-T": "truncation", "-S": "formats", "-U": "formats", "-W": "formats",
    "-Y": "formats", "-Z": "formats",
    "-f": "the Fortran standard", "-m": "record markers", "-y": "formats",
    "-B": "O_DIRECT; say -F bufa:bs:n:direct=1", "-P": "the scope",
}  # fmt: skip


class Word(str):
    """A word with its columns, one for each character and one for its end."""

    columns: list[int]

    @classmethod
    def of(cls, text: str, columns: Sequence[int]) -> Word:
        word = cls(text)
        word.columns = list(columns)
        return word

    def column(self, offset: int) -> int:
        return self.columns[min(offset, len(self.columns) - 1)]


@dataclass
class Assignment:
    """One object with its attributes, as texts: ``spec`` of -F, and the conditions of long options.
    """

    object: str
    spec: str | None = None
    attributes: dict[str, str] = field(default_factory=dict)

    def line(self, program: str = "assign") -> str:
        """As the file has it, and as a shell takes it."""
        words = [*program.split(), *(["-F", self.spec] if self.spec is not None else [])]
        for key, value in self.attributes.items():
            words += [OPTION_OF[key], value]
        return shlex.join([*words, self.object])


def parse_object(text: str) -> tuple[int, dict[str, Any]]:
    """An object's place in the order, and the conditions it stands for. Raises Wrong."""
    kind, colon, rest = text.partition(":")
    if not colon or kind not in ("f", "p", "u", "g"):
        if re.fullmatch(r"[a-zA-Z]:.*", text):
            raise Wrong(f"there is no kind of object {kind}: it is f:name, p:pattern, u:unit, "
                        f"g:su, g:sf, g:du, g:df or g:all")
        return _named(0, text)
    try:
        if not rest:
            raise Wrong(f"something is missing behind {kind}:")
        if kind in "fp":
            return _named("fp".index(kind), rest if kind == "f" else _cray_pattern(rest))
        if kind == "u":
            return 2, {"unit": parse_ranges(rest, "units")}
        if rest == "all":
            return 4, {}
        if rest not in KINDS:
            raise Wrong(f"there is no g:{rest}{near(rest, (*KINDS, 'all'))}; it is "
                        f"{listed([f'g:{k}' for k in (*KINDS, 'all')])}")
        return 3, dict(zip(("access", "form"), KINDS[rest], strict=True))
    except Wrong as wrong:
        raise Wrong(wrong.message, wrong.offset + len(kind) + 1) from None


def _cray_pattern(text: str) -> str:
    """assign(1) has % for any characters and _ for one; a pattern with one of * ? [ is a shell's
    pattern instead."""
    return text if re.search(r"[*?\[\\]", text) else text.replace("%", "*").replace("_", "?")


def _named(order: int, text: str) -> tuple[int, dict[str, Any]]:
    """A name with a slash fits every path that ends so, since assignments are made before the
    program chooses its directory."""
    if not text:
        raise Wrong("the object is empty")
    if "/" not in text:
        return order, {"name": check_name(text)}
    if text[0] in "/*?[":
        return order, {"path": check_path(text)}
    if ".." in text.split("/"):
        raise Wrong("a name that goes up by .. fits nothing: give it from the root")
    return order, {"path": check_path(f"*/{text.removeprefix('./')}")}


def parse_assignment(words: Sequence[Word]) -> Assignment:
    """The words of a line behind ``assign``. Raises Wrong, with a column as the offset."""
    made = Assignment("")
    at = iter(words)
    for word in at:
        name, equals, rest = word.partition("=")
        if word == "-F" or name in _KEY_OF:
            value = Word.of(rest,
                word.columns[len(name) + 1 :]) if equals and word != "-F" else next(at, None)
            if value is None:
                raise Wrong(f"{name} wants a value", word.column(len(word)))
            if word == "-F":
                made.spec = value
            else:
                made.attributes[_KEY_OF[name]] = value
        elif word.startswith("-") and word != "-":
            known = near(name, ("-F", *_KEY_OF))
            why = f"weir has no {word[:2]} ({_CRAYS[word[:2]]})" if word[
                :2] in _CRAYS and not word.startswith("--") else f"there is no option {name}{known}"
            raise Wrong(why, word.column(0))
        elif made.object:
            raise Wrong("there is an object already on this line", word.column(0))
        else:
            made.object = word
    if not made.object:
        raise Wrong("there is no object on this line, such as f:name",
            words[-1].column(len(words[-1])) if words else 1)
    return made


def _rule(made: Assignment, place: Place, text: str,
        mistakes: list[Mistake]) -> tuple[int, Rule] | None:
    before = len(mistakes)

    def wrong_at(word: str, offset: int, message: str) -> None:
        column = word.column(offset) if isinstance(word, Word) else place.column
        mistakes.append(Mistake(Place(place.file, place.line, column), message, text))

    order, found = 0, {}
    try:
        order, found = parse_object(made.object)
    except Wrong as wrong:
        wrong_at(made.object, wrong.offset, wrong.message)
    for key, value in made.attributes.items():
        try:
            parsed = parse_condition(key, [(value, lambda offset: offset)])
        except Wrong as wrong:
            wrong_at(value, wrong.offset, wrong.message)
            continue
        if found.get(key, parsed) != parsed:
            wrong_at(value, 0, f"{made.object} says already which {key}")
        found[key] = parsed
    stack = _stack(made, place, text, mistakes, wrong_at)
    if wrong := condition_mistake(Conditions(**found), stack or ()):
        mistakes.append(Mistake(place, wrong, text))
    low, high = found.get("min_size"), found.get("max_size")
    if low is not None and high is not None and low > high:
        wrong_at(made.attributes["max_size"], 0,
            "no file is both as large as min-size and as small as max-size")
    if len(mistakes) > before or stack is None:
        return None
    return order, Rule(place, Conditions(**found), stack)


def _stack(made: Assignment, place: Place, text: str, mistakes: list[Mistake],
        wrong_at: Any) -> tuple[Layer, ...] | None:
    if made.spec is None:
        mistakes.append(Mistake(place, f"{made.object} has no layers: -F is missing", text))
        return None
    try:
        return parse_stack(made.spec)
    except StackError as error:
        for wrong in error.wrongs:
            wrong_at(made.spec, wrong.offset, wrong.message)
        return None


def split_words(line: str) -> list[Word]:
    """A line as a shell splits it, words knowing their columns. Raises Wrong for a quote without an
    end."""
    words: list[Word] = []
    text, columns, quote, begun, at = "", [], "", False, 0
    while at < len(line):
        c = line[at]
        if quote:
            if c == quote:
                quote = ""
            elif c == "\\" and quote == '"' and line[at + 1 : at + 2] in ('"', "\\", "$", "`"):
                at += 1
                text, columns = text + line[at], [*columns, at + 1]
            else:
                text, columns = text + c, [*columns, at + 1]
        elif c in "'\"":
            quote, begun = c, True
        elif c == "\\" and at + 1 < len(line):
            at += 1
            text, columns, begun = text + line[at], [*columns, at + 1], True
        elif c in " \t":
            if begun:
                words.append(Word.of(text, [*columns, at + 1]))
            text, columns, begun = "", [], False
        elif c == "#" and not begun:
            break
        else:
            text, columns, begun = text + c, [*columns, at + 1], True
        at += 1
    if quote:
        raise Wrong(f"the quote {quote} has no end", len(line) + 1)
    if begun:
        words.append(Word.of(text, [*columns, at + 1]))
    return words


def parse_lines(text: str, file: str,
        mistakes: list[Mistake]) -> list[tuple[Place, str, Assignment]]:
    """The assignments of a file's text, in its order; lines that are none become mistakes."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        try:
            words = split_words(line)
            if not words:
                continue
            if os.path.basename(words[0]) != "assign":
                if words[0] != "weir" or words[1:2] != ["assign"]:
                    raise Wrong("a line of assignments begins with the word assign",
                        words[0].column(0))
                words = words[1:]
            found.append((Place(file, number, words[0].column(0)), line,
                parse_assignment(words[1:])))
        except Wrong as wrong:
            mistakes.append(Mistake(Place(file, number, wrong.offset), wrong.message, line))
    return found


def rules_of(assignments: Iterable[tuple[Place, str, Assignment]],
        mistakes: list[Mistake]) -> tuple[Rule, ...]:
    """Rules in the order in which they are asked. Raises RulesError with these mistakes and those
    found here."""
    made = [_rule(a, place, line, mistakes) for place, line, a in assignments]
    if mistakes:
        raise RulesError(mistakes)
    return tuple(rule for _, rule in sorted((m for m in made if m), key=lambda m: m[0]))


def parse_assign(text: str, file: str) -> RuleSet:
    """The rules of an assignments file. Raises RulesError."""
    mistakes: list[Mistake] = []
    return RuleSet(rules_of(parse_lines(text, file, mistakes), mistakes), origins=(file,))


def assignment_file(environ: Mapping[str, str]) -> str:
    """Where assignments are kept: $WEIR_ASSIGN_FILE, $FILENV as on Cray, or .assign in the working
    directory."""
    return environ.get("WEIR_ASSIGN_FILE") or environ.get("FILENV") or ".assign"
