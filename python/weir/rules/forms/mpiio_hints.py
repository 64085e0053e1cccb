# SPDX-License-Identifier: Apache-2.0
"""Cray's MPICH_MPIIO_HINTS, as it stands in job scripts:
``wrfout*:striping_factor=16:cb_nodes=16,restart*:...`` to hints."""

from __future__ import annotations

from weir.rules.forms.fields import parse_info
from weir.rules.mistakes import Mistake, Place, RulesError, Wrong
from weir.rules.model import Conditions, Hints, RuleSet
from weir.rules.values import check_name, check_path

VARIABLE = "MPICH_MPIIO_HINTS"


def pattern_conditions(pattern: str) -> Conditions:
    """What a pattern of Cray's variables is for: one with a slash is of paths, any other one of
    names. Raises Wrong."""
    if not pattern:
        raise Wrong("a pattern is missing here")
    if "/" not in pattern:
        return Conditions(name=check_name(pattern))
    return Conditions(path=check_path(pattern if pattern[0] in "/*" else f"*/{pattern}"))


def parse_mpiio_hints(text: str, file: str = VARIABLE) -> RuleSet:
    """The hints of a value of MPICH_MPIIO_HINTS. Raises RulesError with all mistakes."""
    mistakes: list[Mistake] = []
    hints: list[Hints] = []
    at = 0
    for part in text.split(",") if text.strip() else ():
        offset = at + len(part) - len(part.lstrip())
        pattern, _, info = part.partition(":")
        try:
            when = pattern_conditions(pattern.strip())
            offset = at + len(pattern) + 1
            if not info.strip():
                raise Wrong(f"{pattern.strip()} has no hints: write {pattern.strip()}:key=value",
                    -1)
            hints.append(Hints(_place(text, at + len(part) - len(part.lstrip()), file), when,
                parse_info(info)))
        except Wrong as wrong:
            place = _place(text, offset + wrong.offset, file)
            mistakes.append(Mistake(place, wrong.message, text.split("\n")[place.line - 1]))
        at += len(part) + 1
    if mistakes:
        raise RulesError(mistakes)
    return RuleSet(hints=tuple(hints), origins=(file,) if hints else ())


def _place(text: str, offset: int, file: str) -> Place:
    before = text[:offset]
    return Place(file, before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)
