# SPDX-License-Identifier: Apache-2.0
"""Many names as few patterns: TRAJHR00/trajspecL<N> for names that differ in numbers, ECMA.*/<N>/*
for parts of a path.

Decides what is alike by the name and by a kind that the caller gives each name; what the names
stand for is left to the caller.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

LETTERS = "NMLKJIHGFED"
PATTERN_LEGEND = "<N>, <M>, *: parts in which the names of one line differ"
# so many different names in one directory, or directories in one, become `*`; fewer are worth a
# line each
FEWEST_ALIKE = 4
MANY_UNLIKE = 8  # so many names in one directory without a common beginning or end become `*`
SEPARATORS = ".-_:,+=@"
# Digits; or a word of hexadecimal ones with letters among them, as temporary files have.
_RUNS = re.compile(r"((?<![0-9A-Za-z])(?=[a-f]*[0-9]+[a-f])[0-9a-f]{8,}(?![0-9A-Za-z])|[0-9]+)")
_FREE = re.compile(r"(<[A-Z][0-9]*>|\*)")  # what differs, in the text of a pattern
_FITS = {"<": "[0-9a-f]+", "*": "[^/]*"}


@dataclass(frozen=True)
class Numbers:
    """What a letter of a pattern stands for: least and greatest number as they are written, and how
    many there are."""

    letter: str
    least: str
    most: str
    count: int

    @property
    def has_gaps(self) -> bool:
        if not (self.least.isdecimal() and self.most.isdecimal()):
            return True
        return _value(self.most) - _value(self.least) + 1 != self.count


@dataclass(frozen=True)
class Pattern:
    """text: the name itself where it is alone. members: indexes of the names, rising. numbers: one
    entry for each letter in text."""

    text: str
    members: tuple[int, ...]
    numbers: tuple[Numbers, ...] = ()


@dataclass
class _Row:
    kind: Hashable
    parts: tuple[str, ...]  # between the slashes
    members: list[int]
    values: dict[str, set[str]]


def find_patterns(names: Sequence[str], kinds: Sequence[Hashable], *,
        directories: bool = True) -> list[Pattern]:
    """Each name is in one pattern; names of different kinds never share one. In the order of the
    first member.

    Runs of digits (and words of eight and more hexadecimal ones) that differ become letters: the
    same letter where they vary together, so that one tells the other. Names with the same runs stay
    literal there. directories: then FEWEST_ALIKE and more names that differ in one part of their
    path become `*` there, as long as something still tells where they lie. A pattern never has one
    name alone. names must be distinct.
    """
    rows = _by_numbers(names, kinds)
    if directories:
        for depth in sorted({len(row.parts) for row in rows}):
            of_depth = [row for row in rows if len(row.parts) == depth]
            rows = [row for row in rows if len(row.parts) != depth]
            for position in reversed(range(depth)):
                of_depth = _folded(of_depth, position)
            rows += of_depth
    made = [Pattern("/".join(row.parts), tuple(sorted(row.members)), _numbers(row)) for row in rows]
    return sorted(made, key=lambda one: one.members[0])


def skeleton(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What stands between the runs of digits of a name, and the runs."""
    parts = _RUNS.split(name)
    return tuple(parts[::2]), tuple(parts[1::2])


def joined(literals: Iterable[str], runs: Iterable[str]) -> str:
    """The name of a skeleton with these runs."""
    between = iter(literals)
    return next(between) + "".join(run + literal for run, literal in zip(runs, between))


def as_regex(pattern: str) -> re.Pattern[str]:
    """What the text of a pattern fits, with other numbers as well."""
    return re.compile("".join(_FITS.get(one[:1], re.escape(one))
        for one in _FREE.split(pattern)), re.DOTALL)


def letter(number: int) -> str:
    """<N>, <M>, ...; behind the last one <N12>, <N13>, ..."""
    return LETTERS[number] if number < len(LETTERS) else f"N{number + 1}"


def lettered(found: Sequence[tuple[str, ...]]) -> tuple[list[str], dict[str, set[str]]]:
    """The runs of names of one skeleton, those that vary as <letter>, and the numbers behind each
    letter."""
    runs: list[str] = []
    values: dict[str, set[str]] = {}
    letters: dict[tuple[int, ...], str] = {}
    for column in zip(*found):
        seen: dict[str, int] = {}
        # equal shapes: one run tells the other
        shape = tuple(seen.setdefault(run, len(seen)) for run in column)
        if len(seen) == 1:
            runs.append(column[0])
            continue
        if shape not in letters:
            letters[shape] = letter(len(letters))
            values[letters[shape]] = set(seen)
        runs.append(f"<{letters[shape]}>")
    return runs, values


def _by_numbers(names: Sequence[str], kinds: Sequence[Hashable]) -> list[_Row]:
    groups: dict[Hashable, list[tuple[int, tuple[str, ...]]]] = defaultdict(list)
    for index, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        literals, runs = skeleton(name)
        groups[kind, literals].append((index, runs))
    rows = []
    for (kind, literals), found in groups.items():
        runs, values = lettered([runs for _, runs in found])
        rows.append(_Row(kind, tuple(joined(literals, runs).split("/")),
            [index for index, _ in found], values))
    return rows


def _folded(rows: list[_Row], position: int) -> list[_Row]:
    """Rows of one depth; those that differ at `position` alone become one where they are many."""
    groups: dict[Hashable, list[_Row]] = defaultdict(list)
    for row in rows:
        groups[row.kind, row.parts[:position], row.parts[position + 1 :]].append(row)
    made = []
    for (kind, before, after), alike in groups.items():
        others = before + after
        if len(alike) < FEWEST_ALIKE or not others:
            made += alike
            continue
        for some in _sorts(alike) if not after else [alike]:
            part = _common([row.parts[position] for row in some])
            is_in_one = all(one == "" or _tells(one) and "*" not in one for one in before)
            is_in_one = is_in_one and not after
            fewest = MANY_UNLIKE if _is_any(part) and is_in_one else FEWEST_ALIKE
            if len(some) < fewest or (_is_any(part) and not any(map(_tells, others))):
                made += some
            else:
                made.append(_joined_rows(kind, (*before, part, *after), some))
    return made


def _joined_rows(kind: Hashable, parts: tuple[str, ...], rows: list[_Row]) -> _Row:
    values: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        for name, found in row.values.items():
            values[name] |= found
    return _Row(kind, parts, [index for row in rows for index in row.members], dict(values))


def _sorts(rows: list[_Row]) -> list[list[_Row]]:
    """Rows by what their file names have in common: all of them, else those of one extension, then
    those of one beginning, then the rest."""
    if not _is_any(_common([row.parts[-1] for row in rows])):
        return [rows]
    made, rest = [], rows
    for word in (_extension, _beginning):
        groups: dict[str, list[_Row]] = defaultdict(list)
        for row in rest:
            groups[word(row.parts[-1])].append(row)
        made += [some for key, some in groups.items() if key and len(some) >= FEWEST_ALIKE]
        rest = [
            row for key, some in groups.items() if not key or len(some) < FEWEST_ALIKE
            for row in some
        ]  # fmt: skip
    return [*made, rest] if rest else made


def _extension(name: str) -> str:
    return name[name.rindex(".") :] if "." in name[1:] else ""


def _beginning(name: str) -> str:
    end = min((at for one in SEPARATORS if (at := name.find(one)) > 0), default=0)
    return name[: end + 1] if end else ""


def _tells(part: str) -> bool:
    """Whether a part of a path says where a file lies."""
    return part not in ("", ".", "..", "*") and re.fullmatch(r"<[A-Z][0-9]*>", part) is None


def _is_any(part: str) -> bool:
    """Whether a folded part says nothing of its names: *, .*"""
    return "*" in part and not part.strip("*" + SEPARATORS)


def _common(parts: Sequence[str]) -> str:
    """`*` with what all parts begin and end with, up to a separator: ECMA.*, *.def."""
    shortest = min(map(len, parts))
    begin = next((i for i in range(shortest) if len({part[i] for part in parts}) > 1), shortest)
    end = next((i for i in range(shortest - begin) if len({part[-1 - i] for part in parts}) > 1),
        shortest - begin)
    head, tail = parts[0][:begin], parts[0][len(parts[0]) - end :]
    head = head[: max((head.rfind(one) for one in SEPARATORS), default=-1) + 1]
    starts = [at for one in SEPARATORS if (at := tail.find(one)) >= 0]
    return head + "*" + (tail[min(starts) :] if starts else "")


def _numbers(row: _Row) -> tuple[Numbers, ...]:
    text = "/".join(row.parts)
    found = []
    for name, values in row.values.items():
        if f"<{name}>" in text:
            ordered = sorted(values, key=_size)
            found.append(Numbers(name, ordered[0], ordered[-1], len(values)))
    return tuple(found)


def _size(run: str) -> tuple[int, str, int]:
    """The order of runs of digits as numbers, however long; of equal ones the shorter first."""
    plain = run.lstrip("0")
    return len(plain), plain, len(run)


def _value(run: str) -> int:
    """Of a run of digits; of more than a number of files can have, the last ones."""
    return int(run[-18:])
