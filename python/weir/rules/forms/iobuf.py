# SPDX-License-Identifier: Apache-2.0
"""Cray's IOBUF_PARAMS, as it stands in job scripts: ``'*.nc:size=8M:count=32:prefetch=1,%stdout'``
to rules with bufa.

Patterns are separated by commas, a pattern and its options by colons; the first pattern that fits
wins. What has no counterpart in weir becomes a warning that names it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from weir.rules.forms.mpiio_hints import pattern_conditions
from weir.rules.layers import kinds
from weir.rules.mistakes import Mistake, Place, RulesError, Wrong, near
from weir.rules.model import EVENT, SYSTEM, Layer, Rule, RuleSet
from weir.rules.values import BLOCK, parse_number, parse_size, size_text

VARIABLE = "IOBUF_PARAMS"
DEFAULT_BYTES, DEFAULT_COUNT = 1 << 20, 4
_STREAMS = ("%stdin", "%stdout", "%stderr")


@dataclass
class _Spec:
    """What is known of one pattern while its options are read."""

    bytes: int = DEFAULT_BYTES
    count: int = DEFAULT_COUNT
    direct: bool = False
    verbose: bool = False
    notes: list[tuple[int, str]] = field(default_factory=list)


def _size(spec: _Spec, value: str) -> None:
    given = parse_size(value, 1)
    low, high = kinds()["bufa"].positional[0].low, kinds()["bufa"].positional[0].high
    if given == 0:
        raise Wrong("size is at least 1 byte, not 0")
    spec.bytes = min(high, max(low, -(-given // BLOCK) * BLOCK))
    if spec.bytes < given:
        spec.notes.append((0,
            f"size={value} is more than a buffer of bufa can be: {size_text(spec.bytes)} is taken"))
    elif spec.bytes != given:
        spec.notes.append((0,
            f"size={value} is rounded up to {size_text(spec.bytes)}, whole blocks of 4 KiB"))


def _count(spec: _Spec, value: str) -> None:
    given, high = parse_number(value), kinds()["bufa"].positional[1].high
    if given == 0:
        raise Wrong("count is at least 1, not 0")
    spec.count = min(given, high)
    if given > high:
        spec.notes.append((0, f"count={value} is more than bufa can have: {high} are taken"))


def _flag(name: str, to: bool) -> Callable[[_Spec, str], None]:
    def set_flag(spec: _Spec, value: str) -> None:
        if value not in ("", "0", "1"):
            raise Wrong(f"{name} takes no value but 0 or 1, not {value!r}")
        setattr(spec, name, to if value != "0" else not to)

    return set_flag


def _ignored(why: str) -> Callable[[_Spec, str], None]:
    def note(spec: _Spec, value: str) -> None:
        spec.notes.append((0, why))

    return note


# Which options take a value, and what becomes of them.
_WITH_VALUE: dict[str, Callable[[_Spec, str], None]] = {
    "size": _size,
    "count": _count,
    "prefetch": _ignored(
        "has no counterpart: bufa decides how far it reads ahead, within its buffers"),
    "preflush": _ignored("has no counterpart: bufa writes behind as soon as a buffer is full"),
    "vbuffer_count": _ignored("has no counterpart: bufa has real buffers alone"),
    "vbuffer_size": _ignored("has no counterpart: bufa has real buffers alone"),
}
_DURABLE = "has no counterpart: fsync and close are always what POSIX says"
_PLAIN: dict[str, Callable[[_Spec, str], None]] = {
    "direct": _flag("direct", True),
    "nodirect": _flag("direct", False),
    "verbose": _flag("verbose", True),
    "noverbose": _flag("verbose", False),
    "ignoreflush": _ignored(_DURABLE),
    "noignoreflush": lambda spec, value: None,
    "lazyflush": _ignored(_DURABLE),
    "nolazyflush": lambda spec, value: None,
    "lazyclose": _ignored(_DURABLE),
    "nolazyclose": lambda spec, value: None,
    "flush": lambda spec, value: None,
    "noflush": _ignored(_DURABLE),
    "ignorecheckpoint": _ignored("has no counterpart: weir has no checkpoints of its own"),
    "linebuffer": _ignored("has no counterpart: bufa does not look for the ends of lines"),
    "linebuffered": _ignored("has no counterpart: bufa does not look for the ends of lines"),
}


def parse_iobuf(text: str, file: str = VARIABLE) -> RuleSet:
    """The rules of a value of IOBUF_PARAMS. Raises RulesError with all mistakes."""
    mistakes: list[Mistake] = []
    warnings: list[Mistake] = []
    rules: list[Rule] = []
    at = 0

    def said(offset: int, message: str) -> Mistake:
        line = text.count("\n", 0, offset) + 1
        column = offset - (text.rfind("\n", 0, offset) + 1) + 1
        return Mistake(Place(file, line, column), message, text.split("\n")[line - 1])

    for part in text.split(",") if text.strip() else ():
        begin = at + len(part) - len(part.lstrip())
        spec, wrongs = _options(part, at)
        pattern = part.split(":")[0].strip()
        at += len(part) + 1
        mistakes += [said(offset, message) for offset, message in wrongs]
        warnings += [said(offset, message) for offset, message in spec.notes]
        if pattern in _STREAMS:
            warnings.append(said(begin,
                f"{pattern} has no counterpart: layers are for files that a program opens"))
            continue
        try:
            rules.append(Rule(said(begin, "").place, pattern_conditions(pattern), _stack(spec)))
        except Wrong as wrong:
            mistakes.append(said(begin + wrong.offset, wrong.message))
    if mistakes:
        raise RulesError(mistakes)
    return RuleSet(tuple(rules), warnings=tuple(warnings), origins=(file,) if text.strip() else ())


def _options(part: str, at: int) -> tuple[_Spec, list[tuple[int, str]]]:
    spec, wrongs = _Spec(), []
    fields = part.split(":")
    at += len(fields[0]) + 1
    for text in fields[1:]:
        begin = at + len(text) - len(text.lstrip())
        before = len(spec.notes)
        try:
            _option(spec, text)
        except Wrong as wrong:
            wrongs.append((begin + wrong.offset, wrong.message))
        name = text.partition("=")[0].strip()
        spec.notes[before:] = [(begin, n if n.startswith(name) else f"{name} {n}")
            for _, n in spec.notes[before:]]
        at += len(text) + 1
    return spec, wrongs


def _option(spec: _Spec, text: str) -> None:
    name, equals, value = text.partition("=")
    name, value = name.strip(), value.strip()
    if name in _WITH_VALUE:
        if not value:
            raise Wrong(f"{name} wants a value, as in {name}=8M" if name == "size"
                else f"{name} wants a number, as in {name}=4")
        offset = text.index("=") + 1 - (len(text) - len(text.lstrip()))
        try:
            _WITH_VALUE[name](spec, value)
        except Wrong as wrong:
            raise Wrong(wrong.message, offset) from None
    elif name in _PLAIN:
        _PLAIN[name](spec, value)
    elif not name:
        raise Wrong("an option is missing here")
    else:
        raise Wrong(f"IOBUF_PARAMS has no option {name!r}{near(name, (*_WITH_VALUE, *_PLAIN))}")


def _stack(spec: _Spec) -> tuple[Layer, ...]:
    bufa = Layer("bufa", (spec.bytes, spec.count), (("direct", "1"),) if spec.direct else ())
    return (EVENT, bufa, EVENT, SYSTEM) if spec.verbose else (bufa, SYSTEM)
