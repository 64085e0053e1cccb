# SPDX-License-Identifier: Apache-2.0
"""Which rule makes the command fail, where it fails under several of them: found by halves."""

from __future__ import annotations

import signal
from collections.abc import Collection, Sequence

Sets = Sequence[Collection[str]]


def suspects(rules: Sequence[str], failed: Sets, passed: Sets) -> list[str]:
    """Of the smallest set under which the command failed, the rules that it did not pass with
    since; the last one where each half passes alone. Empty where no set of these rules failed."""
    sets = [one for one in failed if one and set(one) <= set(rules)]
    if not sets:
        return []
    smallest = min(sets, key=len)
    cleared = {rule for one in passed if set(one) < set(smallest) for rule in one}
    left = [rule for rule in rules if rule in smallest and rule not in cleared]
    return left or [list(smallest)[-1]]


def half(found: Sequence[str]) -> list[str]:
    """What to try next of two suspects and more."""
    return list(found[: len(found) // 2])


def ended(status: int) -> str:
    """How the command ended, for a reason. status: as a shell has it."""
    number = status - 128
    if number in list(signal.Signals):
        return (f"the command was killed by {signal.Signals(number).name} with it, which no rule "
                f"may cause: please report it")
    return f"the command ended with status {status}"
