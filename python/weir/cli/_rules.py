# SPDX-License-Identifier: Apache-2.0
"""What ``weir run``, ``weir trace`` and ``weir env`` do with --rules: read, check, warn, compile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

Rules = Annotated[
    list[str] | None,
    typer.Option("--rules", "-r", metavar="FILE",
        help="Rules in TOML or as assignments; repeatable: the first file with a rule that matches "
             "decides."),
]


def compiled_rules(files: Sequence[str], environ: Mapping[str, str], tracing: bool, quiet: bool,
        verbose: bool = False) -> str:
    """The text for WEIR_RULES, with warnings on standard error.

    Raises RulesError for mistakes, UsageError when there are no rules at all.
    """
    from weir._errors import UsageError
    from weir.capture._launch import say
    from weir.rules.check import shadowed
    from weir.rules.forms.compiled import compile_rules
    from weir.rules.sources import gather_rules

    rules = gather_rules(files, environ)
    if not rules:
        where = f"{', '.join(rules.origins)}: there are" if rules.origins else "there are"
        raise UsageError(
            f"{where} no rules: name a file with --rules, make some with weir assign, or set "
            f"IOBUF_PARAMS")
    text = compile_rules(rules, tracing)
    if not quiet:
        for warning in [*rules.warnings, *shadowed(rules)]:
            say(f"warning: {warning.place}: {warning.message}")
    if verbose:
        say(summary(rules))
    return text


def summary(rules: object) -> str:
    """``3 rules and 1 table of hints from rules.toml, then IOBUF_PARAMS``"""
    counts = [(len(rules.rules), "rule"),
        (len(rules.hints), "table of hints")]  # type: ignore[attr-defined]
    plural = {"rule": "rules", "table of hints": "tables of hints"}
    words = [f"{n} {noun if n == 1 else plural[noun]}" for n, noun in counts if n]
    origins = ", then ".join(rules.origins)  # type: ignore[attr-defined]
    return f"{' and '.join(words)} from {origins}"
