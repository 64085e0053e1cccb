# SPDX-License-Identifier: Apache-2.0
"""Rules to the text of WEIR_RULES, as docs/formats/rules.md has it. Layers are compiled as they
are."""

from __future__ import annotations

import os
import re
from dataclasses import replace

from weir.rules.mistakes import Mistake, RulesError
from weir.rules.model import Conditions, Hints, Layer, Rule, RuleSet
from weir.rules.stack import with_events
from weir.rules.values import ranges_text

LARGEST_BYTES = 64 << 10
_UNSAFE = re.compile(rb"[\x00-\x20\x7f%]")
_UNSAFE_PART = re.compile(rb"[\x00-\x20\x7f%|:,;=]")
_UNSAFE_DIRECTORIES = re.compile(rb"[\x00-\x20\x7f%|:]")


def _encode(text: str, unsafe: re.Pattern[bytes] = _UNSAFE) -> str:
    return os.fsdecode(unsafe.sub(lambda m: b"%%%02X" % m[0][0], os.fsencode(text)))


def _layer(layer: Layer) -> str:
    words = [layer.name, *map(str, layer.args)]
    for name, value in layer.options:
        words.append(
            f"{name}={_encode(value, _UNSAFE_DIRECTORIES if name == 'dirs' else _UNSAFE_PART)}"
        )
    return ":".join(words)


def _conditions(when: Conditions) -> list[str]:
    words = []
    for name, value in when.given().items():
        if name in ("unit", "ranks"):
            text = ranges_text(value)
        elif isinstance(value, tuple):
            text = ",".join(_encode(v, _UNSAFE_PART) for v in value)
        else:
            text = _encode(str(value))
        words.append(f"{name}={text}")
    return words


def _rule(rule: Rule) -> str:
    stack = "|".join(_layer(layer) for layer in rule.stack)
    return " ".join(["rule", f"source={_encode(str(rule.source))}", *_conditions(rule.when),
        f"stack={stack}"])


def _hints(hints: Hints) -> str:
    info = ";".join(f"{_encode(k, _UNSAFE_PART)}={_encode(v, _UNSAFE_PART)}" for k, v in hints.info)
    return " ".join(["hints", f"source={_encode(str(hints.source))}", *_conditions(hints.when),
        f"info={info}"])


def compile_rules(rules: RuleSet, tracing: bool = False) -> str:
    """The text of WEIR_RULES. With ``tracing`` every stack is seen from above and from below.

    Raises RulesError when it would be longer than an environment variable should be.
    """
    chosen = [replace(r, stack=with_events(r.stack))
        for r in rules.rules] if tracing else rules.rules
    lines = ["weir-rules 1", *(_rule(r) for r in chosen), *(_hints(h) for h in rules.hints)]
    text = "\n".join(lines) + "\n"
    size = len(os.fsencode(text))
    if size > LARGEST_BYTES:
        last = (rules.hints or rules.rules)[-1]
        count = len(rules.rules) + len(rules.hints)
        raise RulesError(
            [Mistake(last.source,
                f"{count} rules compile to {size:,} bytes, more than the {LARGEST_BYTES:,} that "
                f"fit; join some by patterns")]
        )
    return text
