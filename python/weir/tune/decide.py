# SPDX-License-Identifier: Apache-2.0
"""Which rules pay, how sure that is, and when enough was run. Functions of figures alone."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weir.advise.frame.finding import Limit
from weir.tune.runs import PLAIN, TUNED, Done

SLOWER = Limit("I/O time of a rule's files with it over that without it, where the interval does "
    "not say which is longer, less than", 1.2, "times",
    "as NOISY: single runs differ by as much")
ALONE = Limit("the same, where requests are not fewer, at most", 0.8, "times",
    "chosen: times of single runs on a shared machine differ by as much")
FEWER = Limit("requests of a rule's files over those without it, at most", 0.9, "times",
    "counts do not depend on the load of the machine: a tenth fewer is no chance")
NOISY = Limit("wall time of the longest plain run over the shortest", 1.2, "times",
    "chosen: from there on single runs do not tell a gain of a tenth")
# Student's t for 90 %, two-sided, by degrees of freedom.
_T90 = (math.inf, 6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812)


@dataclass(frozen=True)
class Gain:
    """Seconds that the run is shorter: of the middle of the runs, and an interval of 90 % around
    it; None with fewer than two pairs of runs."""

    middle: float
    low: float | None = None
    high: float | None = None

    @property
    def is_sure(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def of_kind(runs: Sequence[Done], kind: str, rules: Sequence[str] | None = None) -> list[Done]:
    """rules: only those with just these in force."""
    return [one for one in runs if one.kind == kind
        and (rules is None or set(one.rules) == set(rules))]


def wall_gain(runs: Sequence[Done], rules: Sequence[str]) -> Gain | None:
    """Of the runs with these rules, each paired with the plain run next to it."""
    return gain_of(of_kind(runs, PLAIN), of_kind(runs, TUNED, rules))


def gain_of(base: Sequence[Done], runs: Sequence[Done]) -> Gain | None:
    """Of wall time, each run paired with the one of the other kind next to it."""
    return _paired(base, runs, lambda one: one.figures.wall_s)


def _paired(plain: Sequence[Done], tuned: Sequence[Done],
        seconds: Callable[[Done], float]) -> Gain | None:
    if not tuned or not plain:
        return None
    pairs = [seconds(min(plain, key=lambda one: abs(one.number - run.number))) - seconds(run)
        for run in tuned]
    middle = statistics.mean(pairs)
    if len(pairs) < 2:
        return Gain(middle)
    error = statistics.stdev(pairs) / math.sqrt(len(pairs))
    half = _T90[min(len(pairs) - 1, len(_T90) - 1)] * error
    return Gain(middle, middle - half, middle + half)


def noise(runs: Sequence[Done]) -> tuple[float, float] | None:
    """Wall seconds of the shortest and the longest plain run, where they differ so much that the
    machine is noisy."""
    return spread(of_kind(runs, PLAIN))


def spread(alike: Sequence[Done]) -> tuple[float, float] | None:
    """The same of runs that do the same."""
    walls = [one.figures.wall_s for one in alike]
    if len(walls) > 1 and max(walls) > NOISY.value * max(min(walls), 1e-9):
        return min(walls), max(walls)
    return None


@dataclass(frozen=True)
class RuleGain:
    """What one rule did to its files, medians over the runs. gain: of their I/O time. is_met:
    whether it matches files in each run with it; names that differ from run to run it misses."""

    rule: str
    before_s: float
    after_s: float
    before_requests: int
    after_requests: int
    gain: Gain | None = None
    is_met: bool = True

    @property
    def saved_s(self) -> float:
        return self.before_s - self.after_s

    @property
    def pays(self) -> bool:
        """Times decide where the interval of their difference leaves zero out, counts of requests
        where it does not. Never of a rule that matches no file."""
        if not self.before_requests or not self.is_met:
            return False
        is_shorter = self.after_s <= ALONE.value * self.before_s
        if self._is_once:
            return is_shorter or self._are_fewer and self.after_s < SLOWER.value * self.before_s
        if self.gain is not None and self.gain.is_sure:
            return self.gain.middle > 0 and (is_shorter or self._are_fewer)
        return self._are_fewer and self.after_s < SLOWER.value * self.before_s

    @property
    def why_not(self) -> str:
        """Of a rule that does not pay."""
        if not self.is_met:
            return "it matches no file of a run with it: names of files differ from run to run"
        return (f"it does not pay: {self.before_s:.3f} s and {self.before_requests} requests "
            f"before, {self.after_s:.3f} s and {self.after_requests} with it")

    @property
    def needs_a_run(self) -> bool:
        """Whether the time of a single run, which may be chance, speaks against the counts."""
        return (self._is_once and bool(self.before_requests) and self.is_met and self._are_fewer
            and not self.pays)

    @property
    def _is_once(self) -> bool:
        return self.gain is None or self.gain.low is None

    @property
    def _are_fewer(self) -> bool:
        return self.after_requests <= FEWER.value * self.before_requests


def rule_gains(runs: Sequence[Done], rules: Sequence[str]) -> list[RuleGain]:
    """Of the tuned runs in which each rule was in force."""
    made = []
    for rule in rules:
        plain = [one for one in of_kind(runs, PLAIN) if rule in one.figures.by_rule]
        tuned = [one for one in of_kind(runs, TUNED)
            if rule in one.rules and rule in one.figures.by_rule]
        if plain and tuned:
            costs = [[one.figures.by_rule[rule] for one in part] for part in (plain, tuned)]
            made.append(RuleGain(rule, *(statistics.median(one.io_s for one in part)
                for part in costs), *(int(statistics.median(one.requests for one in part))
                for part in costs),
                _paired(plain, tuned, lambda one: one.figures.by_rule[rule].io_s),
                all(one.files != 0 for one in costs[1])))
    return made


def medians(runs: Sequence[Done], key: str) -> float | None:
    values = [getattr(one.figures, key) for one in runs]
    return None if not values or None in values else statistics.median(values)
