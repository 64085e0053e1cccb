# SPDX-License-Identifier: Apache-2.0
"""What changed from run A to run B, in sentences: the most important first."""

from __future__ import annotations

import math
from collections.abc import Iterator

from weir.compare.compute import FilePair, StepPair, ratio
from weir.compare.table import Comparison, ratio_text
from weir.report.frame.amounts import amount, number, seconds, share
from weir.report.frame.build import Report
from weir.report.sentences import count

LEAST_SHARE = 0.01  # of the I/O time of the longer run: what changed less is not worth a sentence


def times(value: float | None) -> str:
    """A ratio B / A in words."""
    if value is None:
        return ""
    if math.isinf(value):
        return "only in B"
    return "the same" if value == 1 else f"{ratio_text(value)} times"


def comparison_sentences(one: Comparison) -> Iterator[str]:
    """Of the steps that both runs have."""
    yield _wall(one)
    yield from _critical(one.total)
    yield _io(one.total)
    for is_grown in (True, False):
        yield from _file(one, is_grown)


def _wall(one: Comparison) -> str:
    a, b = one.total.values("wall")
    who = [_placed(report) for report in (one.a, one.b)]
    of = f" in the {count(len(one.a.steps), 'step')} that both runs have" if (
        len(one.steps) > 1) else ""
    at = f" (A {who[0]}, B {who[1]})" if who[0] != who[1] else f" (both {who[0]})"
    return f"B takes {seconds(b or 0)}, {_of_a(a, b)}{of}{at}."


def _placed(report: Report) -> str:
    ranks = max((sum(rank >= 0 for rank in step.ranks) for step in report.steps), default=0)
    nodes = max((len(step.data.files) for step in report.steps), default=0)
    return f"with {count(ranks, 'rank')} on {count(nodes, 'node')}"


def _of_a(a: float | None, b: float | None) -> str:
    """Seconds of B as seconds of A: 1.31 times the 8.87 s of A."""
    value = ratio(a, b)
    if a is not None and a == b:
        return "as A does"
    if value is None or math.isinf(value):
        return f"A {seconds(a or 0)}"
    return f"{ratio_text(value)} times the {seconds(a or 0)} of A"


def _critical(total: StepPair) -> Iterator[str]:
    (a, b), (wall_a, wall_b) = total.values("critical"), total.values("wall")
    if a is not None and b is not None and wall_a and wall_b and (a or b):
        yield (
            f"I/O delays B by {seconds(b)} ({share(b, wall_b)} of its time), A by {seconds(a)} "
            f"({share(a, wall_a)})."
        )


def _io(total: StepPair) -> str:
    (a, b), calls, moved = (total.values(one) for one in ("seconds", "calls", "bytes"))
    return (
        f"All ranks of B together are {seconds(b or 0)} in I/O, {_of_a(a, b)}. B makes "
        f"{number(calls[1] or 0)} calls, A {number(calls[0] or 0)}, and moves "
        f"{amount(moved[1] or 0)}, A {amount(moved[0] or 0)}."
    )


def _file(one: Comparison, is_grown: bool) -> Iterator[str]:
    """The file whose I/O time rose, or fell, most."""
    sign = 1 if is_grown else -1
    pair = max(one.files, key=lambda pair: (sign * pair.grown_ns, pair.text), default=None)
    whole = max(one.total.values("seconds"), key=lambda value: value or 0) or 0
    if pair is None or sign * pair.grown_ns < LEAST_SHARE * whole * 1e9 or not pair.grown_ns:
        return
    way = "rises" if is_grown else "falls"
    yield (
        f"I/O time {way} most on {pair.text}: {_of_side(pair, 'b')} in B, {_of_side(pair, 'a')} "
        f"in A."
    )


def _of_side(pair: FilePair, which: str) -> str:
    side = getattr(pair, which)
    if not side.files:
        return "not used"
    of = f" of {count(side.files, 'file')}" if side.files > 1 else ""
    return f"{seconds(side.ns / 1e9)} in {count(side.calls, 'call')}{of}, {amount(side.bytes)}"
