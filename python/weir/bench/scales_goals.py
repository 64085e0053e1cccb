# SPDX-License-Identifier: Apache-2.0
"""The goals of ``weir bench scales``, each judged row by row: by the median of ratios within
repetitions, which ran shortly after each other, and the interval in which it lies. A limit within
that interval is "not distinguishable"."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from weir.bench._statistics import interval
from weir.bench.scales import DEFAULT, Row
from weir.report.frame.table import Table

BEST_SHARE, DEFAULT_SHARE, MOST_TRACING = 0.9, 0.95, 0.03
LEAST_REPETITIONS = 3  # for a judgement
MET, MISSED, OPEN = "met", "MISSED", "not distinguishable"


@dataclass(frozen=True)
class RowGoal:
    """A goal in a row of the rates. values: by repetition; least: they must not be below `limit`,
    otherwise not above; against: what they are ratios to, or of; others: processors that other
    programs used meanwhile."""

    what: str
    place: str
    pes: int
    against: str
    limit: float
    least: bool
    values: tuple[float, ...]
    others: float | None = None

    @property
    def outcome(self) -> str:
        if not self.values:
            return "not measured"
        if len(self.values) < LEAST_REPETITIONS:
            return f"too few runs: {LEAST_REPETITIONS} are needed"
        low, high = interval(self.values)
        if not self.least:
            low, high = -high, -low
        limit = self.limit if self.least else -self.limit
        return MET if low >= limit else MISSED if high < limit else OPEN

    @property
    def met(self) -> bool | None:
        return {MET: True, MISSED: False}.get(self.outcome)


def judged(rows: Sequence[Row], tracing: Sequence[float] = ()) -> list[RowGoal]:
    """tracing: of pairs of runs, the share that tracing added."""
    several = [row for row in rows if not row.method.is_single and row.encoding and row.writing]
    groups = {(row.place, row.pes): [one for one in several
        if (one.place, one.pes) == (row.place, row.pes)] for row in several}
    found = []
    for title, kind in (("with encoding", "encoding"), ("writing alone", "writing")):
        for its in groups.values():
            found += _default(its, kind, f"{DEFAULT} / fastest other, {title}")
    found += [_best(its) for its in groups.values()]
    if tracing:
        found.append(RowGoal("processor time added by tracing", "memory", 2, "not traced",
            MOST_TRACING, False, tuple(tracing)))
    return found


def _others(row: Row, kind: str) -> float | None:
    spread = getattr(row, kind).get("others")
    return spread.median if spread else None


def _default(rows: Sequence[Row], kind: str, what: str) -> Iterator[RowGoal]:
    """The default writer against the one to which its ratio is the smallest."""
    own = next((row for row in rows if row.method.name == DEFAULT), None)
    if own is None or len(rows) < 2:
        return
    mine = getattr(own, kind)["mb_s"].values
    ratios = {row.method.name: tuple(a / b for a, b in zip(mine, getattr(row, kind)["mb_s"].values))
        for row in rows if row is not own}
    against = min(ratios, key=lambda name: statistics.median(ratios[name]))
    yield RowGoal(what, own.place, own.pes, against, DEFAULT_SHARE, True, ratios[against],
        _others(own, kind))


def _best(rows: Sequence[Row]) -> RowGoal:
    """The best writer, by its rate divided by that of plain pwrite in the same repetition."""
    best = max(rows, key=lambda row: row.writing["of_pwrite"].median)
    return RowGoal("best writer / plain pwrite, writing alone", best.place, best.pes,
        best.method.name, BEST_SHARE, True, best.writing["of_pwrite"].values,
        _others(best, "writing"))


def table(goals: Sequence[RowGoal]) -> Table:
    rows = tuple(_cells(goal) for goal in goals)
    counts = Counter(goal.outcome for goal in goals)
    return Table("Goals, row by row", ("<goal", "<files in", "PEs", "<compared with", "<limit",
        "median", "interval", "runs", "<result", "others"), rows, remarks=(
            ", ".join(f"{count} {outcome}" for outcome, count in counts.items()),
            "median, interval: of the ratios within each repetition; the median of all possible "
            "repetitions lies in the interval (95 % where there are six runs or more, 75 % of "
            "three); not distinguishable: the limit is within it",
            "others: processors that programs outside of this benchmark used meanwhile"))


def _cells(goal: RowGoal) -> tuple[str, ...]:
    sign = ">=" if goal.least else "<="
    middle = f"{statistics.median(goal.values):.2f}" if goal.values else ""
    around = "{:.2f} to {:.2f}".format(*interval(goal.values)) if len(goal.values) > 1 else ""
    return (goal.what, goal.place, str(goal.pes), goal.against, f"{sign} {goal.limit:g}", middle,
        around, str(len(goal.values)), goal.outcome,
        "" if goal.others is None else f"{goal.others:.1f}")


def as_data(goals: Sequence[RowGoal]) -> list[dict[str, Any]]:
    found = []
    for goal in goals:
        low, high = interval(goal.values) if goal.values else (None, None)
        found.append({"what": goal.what, "place": goal.place, "pes": goal.pes,
            "against": goal.against, "limit": goal.limit, "least": goal.least,
            "values": list(goal.values), "low": low, "high": high, "others": goal.others,
            "outcome": goal.outcome, "met": goal.met})
    return found
