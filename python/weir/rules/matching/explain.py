# SPDX-License-Identifier: Apache-2.0
"""Why a file gets the stack it gets: for ``weir assign --explain``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from weir.rules.layers import Kind, kinds
from weir.rules.matching.match import Open, misfits
from weir.rules.matching.native import file_system_of
from weir.rules.model import Conditions, Hints, Layer, Rule, RuleSet
from weir.rules.stack import layer_text, stack_text
from weir.rules.values import normalised, ranges_text, size_text


def open_of(file: str, modes: Iterable[str] = (), size: int | None = None,
        fstype: str | None = None, **fortran: object) -> Open:
    """The open of a file as far as the machine knows it; what is given goes before what is found.

    Without modes a file that exists is opened to read, another is created to be written.
    """
    path = normalised(os.path.join(os.getcwd(), file))
    found = os.stat(path) if os.path.exists(path) else None
    chosen = frozenset(modes) or frozenset({"read"} if found else {"write", "create"})
    if size is None:
        size = found.st_size if found and "truncate" not in chosen else 0
    return Open(path, chosen, size=size, fstype=file_system_of(path) if fstype is None else fstype,
        **fortran)


def conditions_text(when: Conditions) -> str:
    """What a rule is for, in one line."""
    words = []
    for key, value in when.given().items():
        if key in ("unit", "ranks"):
            text = ranges_text(value)
        elif key in ("min_size", "max_size"):
            text = size_text(value)
        else:
            text = ",".join(value) if isinstance(value, tuple) else value
        words.append(f"{key}={text}")
    return " ".join(words) or "every file"


def layer_notes(layer: Layer) -> str:
    """Sizes of a layer in bytes, and the memory it needs."""
    kind = kinds()[layer.name]
    notes = [kind.summary]
    sizes = [f"{a.name} {int(v):,}" for a, v in zip(kind.positional, layer.args, strict=True)
        if a.kind == "size"]
    if kind.memory is not None:
        notes.append(f"{', '.join(sizes)}; memory up to {_memory_text(kind, layer)}")
    return "; ".join(notes)


def _memory_text(kind: Kind, layer: Layer) -> str:
    memory = kind.memory
    need = kind.memory_of(layer)
    step = kind.memory_of(layer, memory.multiple)
    if memory.multiple_per == memory.per:
        return f"{size_text(-(-need // step) * step)} for each {memory.per}"
    text = f"{size_text(need)} for each {memory.per}"
    if memory.twice_if:
        text += f", {size_text(2 * need)} if it is {memory.twice_if}"
    if memory.multiple_per:
        text += f", rounded up to a multiple of {size_text(step)} for each {memory.multiple_per}"
    return text


def _described(what: Open) -> str:
    words = [", ".join(sorted(what.modes))]
    if what.fortran:
        words.append(f"Fortran unit {'not known' if what.unit is None else what.unit}")
        words += [w for w in (what.access, what.form) if w]
    words.append(f"rank {what.rank}" if what.rank is not None else "no rank")
    words.append(f"{what.size:,} bytes")
    words.append(f"file system {what.fstype or 'not known'}")
    return "; ".join(words)


def explain(rules: RuleSet, what: Open) -> str:
    """Which rule matches, why earlier ones do not, and what the file gets."""
    lines = [what.path, f"  opened for {_described(what)}",
        f"rules from {', then '.join(rules.origins) or 'nowhere'}"]
    matched = _ask(rules.rules, what, lines)
    if matched is None:
        lines.append("no rule matches: the file has no layers")
    else:
        lines += _stack_lines(matched)
    if rules.hints:
        lines.append("for MPI_File_open")
        hints = _ask(rules.hints, what, lines)
        if hints is None:
            lines.append("no hints match")
        else:
            lines += [f"  {key} = {value}" for key, value in hints.info]
    return "\n".join(lines) + "\n"


def _ask(given: Sequence[Rule] | Sequence[Hints], what: Open,
        lines: list[str]) -> Rule | Hints | None:
    for one in given:
        why = misfits(one.when, what)
        if not why:
            lines.append(f"  {one.source}  {conditions_text(one.when)}: matches")
            return one
        lines.append(f"  {one.source}  {conditions_text(one.when)}: no, {'; '.join(why)}")
    return None


def _stack_lines(rule: Rule) -> list[str]:
    if rule.exempts:
        return ["stack none: the file has no layers"]
    lines = [f"stack {stack_text(rule.stack)}"]
    shown = [layer_text(layer) for layer in rule.stack]
    width = max(map(len, shown))
    return lines + [f"  {text:<{width}}  {layer_notes(layer)}"
        for text, layer in zip(shown, rule.stack, strict=True)]
