# SPDX-License-Identifier: Apache-2.0
"""The conditions of a rule, one parser for each key: TOML and assign's options share them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weir.rules.mistakes import Wrong
from weir.rules.model import ACCESSES, FORMS, MODES
from weir.rules.values import (
    check_dir,
    check_file_system,
    check_name,
    check_path,
    join_ranges,
    parse_choice,
    parse_choices,
    parse_ranges,
    parse_size,
    parts,
)

# One value: each of its texts, with a function from a character of it to its place.
Words = list[tuple[str, Callable[[int], int]]]


def _one(words: Words, parse: Callable[[str], Any]) -> Any:
    if len(words) != 1:
        raise Wrong("this key takes one value, not a list", words[1][1](0))
    return _parse(*words[0], parse)


def _parse(text: str, place: Callable[[int], int], parse: Callable[[str], Any]) -> Any:
    try:
        return parse(text)
    except Wrong as wrong:
        raise Wrong(wrong.message, place(wrong.offset)) from None


def _ranges(what: str) -> Callable[[Words], tuple[tuple[int, int], ...]]:
    return lambda words: join_ranges([r for w in words
        for r in _parse(*w, lambda text: parse_ranges(text, what))])


def _modes(words: Words) -> tuple[str, ...]:
    chosen = {m for w in words for m in _parse(*w, lambda text: parse_choices(text, MODES, "mode"))}
    return tuple(m for m in MODES if m in chosen)


def _file_systems(words: Words) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for w in words for name in _parse(*w, _file_system_list)))


def _file_system_list(text: str) -> tuple[str, ...]:
    names = []
    for offset, part in parts(text):
        try:
            names.append(check_file_system(part))
        except Wrong as wrong:
            raise Wrong(wrong.message, offset) from None
    return tuple(names)


_PARSERS: dict[str, Callable[[Words], Any]] = {
    "name": lambda w: _one(w, check_name),
    "path": lambda w: _one(w, check_path),
    "dir": lambda w: _one(w, check_dir),
    "fstype": _file_systems,
    "unit": _ranges("units"),
    "access": lambda w: _one(w, lambda text: parse_choice(text, ACCESSES, "access")),
    "form": lambda w: _one(w, lambda text: parse_choice(text, FORMS, "form")),
    "mode": _modes,
    "min_size": lambda w: _one(w, lambda text: parse_size(text, 1)),
    "max_size": lambda w: _one(w, lambda text: parse_size(text, 1)),
    "ranks": _ranges("ranks"),
}
CONDITIONS: Sequence[str] = tuple(_PARSERS)


def parse_condition(key: str, words: Words) -> Any:
    """The value of a condition. Raises Wrong with a place as ``words`` has them."""
    return _PARSERS[key](words)


def parse_info(text: str) -> tuple[tuple[str, str], ...]:
    """``striping_factor=16:cb_nodes=16``, Cray's syntax. Raises Wrong."""
    pairs = []
    for offset, part in parts(text, ":"):
        key, equals, value = (s.strip() for s in part.partition("="))
        if not equals or not key or not value:
            raise Wrong(f"{part!r} is no hint: write key=value, with colons between hints", offset)
        pairs.append((key, value))
    return tuple(pairs)
