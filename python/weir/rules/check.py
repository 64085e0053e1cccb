# SPDX-License-Identifier: Apache-2.0
"""Rules that can never match because an earlier one takes all their files. Only what can be proved
is said."""

from __future__ import annotations

import re
from collections.abc import Sequence

from weir.rules.matching.native import fits
from weir.rules.mistakes import Mistake
from weir.rules.model import Conditions, Hints, Rule, RuleSet

_WILDCARDS = re.compile(r"[*?\[\\]")


def shadowed(rules: RuleSet) -> list[Mistake]:
    """A warning for each rule, and each hints, that cannot match."""
    return [*_shadowed(rules.rules, "rule"), *_shadowed(rules.hints, "table of hints")]


def _shadowed(given: Sequence[Rule] | Sequence[Hints], what: str) -> list[Mistake]:
    found = []
    for index, one in enumerate(given):
        earlier = next((e for e in given[:index] if covers(e.when, one.when)), None)
        if earlier is not None:
            found.append(Mistake(one.source,
                f"this {what} can never match: {earlier.source} comes first and takes all its "
                f"files"))
    return found


def covers(wide: Conditions, narrow: Conditions) -> bool:
    """True only if every open that ``narrow`` matches is matched by ``wide``."""
    return (
        _pattern_covers(wide.name, narrow.name)
        and _pattern_covers(wide.path, narrow.path)
        and _directory_covers(wide, narrow)
        and _any_of(wide.fstype, narrow.fstype)
        and _ranges_cover(wide.unit, narrow.unit)
        and _ranges_cover(wide.ranks, narrow.ranks)
        and (wide.access is None or wide.access == narrow.access)
        and (wide.form is None or wide.form == narrow.form)
        and (not wide.mode or bool(narrow.mode) and set(narrow.mode) <= set(wide.mode))
        and (wide.min_size or 0) <= (narrow.min_size or 0)
        and (wide.max_size is None
            or (narrow.max_size is not None and narrow.max_size <= wide.max_size))
    )


def _pattern_covers(wide: str | None, narrow: str | None) -> bool:
    if wide is None or set(wide) == {"*"} or wide == narrow:
        return True
    if narrow is None:
        return False
    if not _WILDCARDS.search(narrow):
        return fits(wide, narrow)
    head, star, tail = wide.partition("*")
    if not star or _WILDCARDS.search(head) or _WILDCARDS.search(tail):
        return False
    # wide is head*tail: what every name of narrow begins and ends with decides, if the two parts do
    # not overlap.
    begin = _WILDCARDS.split(narrow, maxsplit=1)[0]
    end = narrow.rpartition("*")[2]
    plain_end = "*" in narrow and not _WILDCARDS.search(end)
    return begin.startswith(head) and (not tail or (plain_end and end.endswith(tail)))


def _directory_covers(wide: Conditions, narrow: Conditions) -> bool:
    if wide.dir is None or wide.dir == "/":
        return True
    if narrow.dir is not None and f"{narrow.dir}/".startswith(f"{wide.dir}/"):
        return True
    return narrow.path is not None and _WILDCARDS.split(narrow.path,
        maxsplit=1)[0].startswith(f"{wide.dir}/")


def _any_of(wide: tuple[str, ...], narrow: tuple[str, ...]) -> bool:
    return not wide or (bool(narrow)
        and all(n in wide or ("fuse" in wide and n.startswith("fuse.")) for n in narrow))


def _ranges_cover(wide: tuple[tuple[int, int], ...], narrow: tuple[tuple[int, int], ...]) -> bool:
    if not wide:
        return True
    return bool(narrow) and all(any(low <= first and last <= high for low, high in wide)
        for first, last in narrow)
