# SPDX-License-Identifier: Apache-2.0
"""Rules written in another form: TOML, commands of assign, IOBUF_PARAMS. What a form cannot say is
an error that names the rule."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from weir._errors import UsageError
from weir.rules.forms.assign import KINDS, Assignment, parse_object
from weir.rules.forms.iobuf import VARIABLE
from weir.rules.mistakes import Mistake, Place, RulesError, Wrong
from weir.rules.model import EVENT, SYSTEM, Conditions, Rule, RuleSet
from weir.rules.stack import stack_text
from weir.rules.values import ranges_text, size_text


def convert(rules: RuleSet, form: str) -> str:
    """The rules as a text of the form: toml, assign or iobuf. Raises RulesError for what it cannot
    say."""
    if form not in FORMS:
        raise UsageError(
            f"--convert {form}: there is no such form; it is one of {', '.join(FORMS)}")
    return FORMS[form](rules)


def _quoted(text: str) -> str:
    """A TOML basic string."""
    made = ""
    for c in text:
        if c in '"\\':
            made += f"\\{c}"
        elif ord(c) < 32 or ord(c) == 127:
            made += f"\\u{ord(c):04x}"
        else:
            made += c
    return f'"{made}"'


def _toml_value(key: str, value: Any) -> str:
    if key in ("unit", "ranks"):
        return _quoted(ranges_text(value))
    if key in ("min_size", "max_size"):
        return _quoted(size_text(value))
    if isinstance(value, tuple):
        return f"[{', '.join(_quoted(v) for v in value)}]" if len(value) > 1 else _quoted(value[0])
    return _quoted(value)


def to_toml(rules: RuleSet) -> str:
    blocks = []
    for rule in rules.rules:
        lines = [f"{k} = {_toml_value(k, v)}" for k, v in rule.when.given().items()]
        stack = "none" if rule.exempts else stack_text(rule.stack)
        blocks.append("\n".join(["[[rule]]", *lines, f"stack = {_quoted(stack)}"]))
    for hints in rules.hints:
        lines = [f"{k} = {_toml_value(k, v)}" for k, v in hints.when.given().items()]
        if all(":" not in v and v == v.strip() for _, v in hints.info):
            lines.append(f"info = {_quoted(':'.join(f'{k}={v}' for k, v in hints.info))}")
        else:
            lines += [f"{_quoted(k)} = {_quoted(v)}" for k, v in hints.info]
        blocks.append("\n".join(["[[hints]]", *lines]))
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _cannot(place: Place, why: str) -> Mistake:
    return Mistake(place, why)


def _object_of(when: Conditions) -> tuple[str, Conditions]:
    """The object that says most of the conditions, and those left for long options."""
    candidates: list[tuple[str, dict[str, Any]]] = []
    if when.name is not None:
        candidates.append((f"f:{when.name}", {"name": None}))
    if when.path is not None:
        candidates.append((f"f:{when.path}", {"path": None}))
    if len(when.unit) == 1:
        candidates.append((f"u:{ranges_text(when.unit)}", {"unit": ()}))
    kind = next((k for k, v in KINDS.items() if v == (when.access, when.form)), None)
    if kind:
        candidates.append((f"g:{kind}", {"access": None, "form": None}))
    for text, said in candidates:
        try:
            _, means = parse_object(text)
        except Wrong:
            continue
        if means == {k: v for k, v in when.given().items() if k in said}:
            return text, replace(when, **said)
    return "g:all", when


def to_assign(rules: RuleSet) -> str:
    mistakes = [_cannot(h.source, "assign has no hints: keep them in a file of TOML")
        for h in rules.hints]
    lines: list[str] = []
    seen: dict[str, Place] = {}
    orders: list[tuple[int, Rule]] = []
    for rule in rules.rules:
        name, left = _object_of(rule.when)
        if name in seen:
            mistakes.append(_cannot(rule.source,
                f"assign has one set of attributes for {name}, and {seen[name]} is it"))
        seen.setdefault(name, rule.source)
        order, _ = parse_object(name)
        late = next((r for o, r in orders if o > order and not _disjoint(r.when, rule.when)), None)
        if late is not None:
            mistakes.append(_cannot(rule.source,
                f"assign would ask {name} before the rule of {late.source}, which comes first "
                f"here"))
        orders.append((order, rule))
        spec = "none" if rule.exempts else stack_text(rule.stack, ",")
        attributes = {k: _option_value(k, v) for k, v in left.given().items()}
        lines.append(Assignment(name, spec, attributes).line("weir assign"))
    if mistakes:
        raise RulesError(mistakes)
    return "".join(f"{line}\n" for line in lines)


def _option_value(key: str, value: Any) -> str:
    if key in ("unit", "ranks"):
        return ranges_text(value)
    if key in ("min_size", "max_size"):
        return size_text(value)
    return ",".join(value) if isinstance(value, tuple) else value


def _disjoint(one: Conditions, other: Conditions) -> bool:
    """True only if no open fits both."""
    for key in ("access", "form"):
        a, b = getattr(one, key), getattr(other, key)
        if a is not None and b is not None and a != b:
            return True
    for key in ("unit", "ranks"):
        a, b = getattr(one, key), getattr(other, key)
        if a and b and not any(x[0] <= y[1] and y[0] <= x[1] for x in a for y in b):
            return True
    return False


def to_iobuf(rules: RuleSet) -> str:
    mistakes = [_cannot(h.source, f"{VARIABLE} has no hints") for h in rules.hints]
    specs = []
    for rule in rules.rules:
        try:
            specs.append(_iobuf_spec(rule))
        except Wrong as wrong:
            mistakes.append(_cannot(rule.source, wrong.message))
    if mistakes:
        raise RulesError(mistakes)
    return f"{VARIABLE}={shlex.quote(','.join(specs))}\n"


def _iobuf_spec(rule: Rule) -> str:
    given = rule.when.given()
    others = [k for k in given if k not in ("name", "path")]
    if others or len(given) > 1:
        raise Wrong(f"{VARIABLE} has patterns alone, no "
                    f"{others[0] if others else 'path beside a name'}")
    pattern = rule.when.name or rule.when.path or "*"
    if any(c in pattern for c in ",:") or pattern != pattern.strip() or pattern.startswith("%"):
        raise Wrong(f"{VARIABLE} cannot have the pattern {pattern}")
    verbose = rule.stack[0] == EVENT
    bufa = [layer for layer in rule.stack if layer.name == "bufa"]
    if not bufa or rule.stack not in ((bufa[0], SYSTEM), (EVENT, bufa[0], EVENT, SYSTEM)):
        raise Wrong(f"{VARIABLE} has bufa alone, not {stack_text(rule.stack)}")
    size, count = bufa[0].args
    number = str(size) if size % 1024 else size_text(size).removesuffix("iB")
    direct = ":direct" if ("direct", "1") in bufa[0].options else ""
    return f"{pattern}:size={number}:count={count}{direct}{':verbose' if verbose else ''}"


FORMS: dict[str, Callable[[RuleSet], str]] = {"toml": to_toml, "assign": to_assign,
    "iobuf": to_iobuf}
