# SPDX-License-Identifier: Apache-2.0
"""All that was found in a run, ranked; which rules follow from it; and where the rest of its I/O
time is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from weir.advise.frame.facts import Facts
from weir.advise.frame.finding import STARTS, Advice, Limit, Rule
from weir.advise.findings.harmful_layer.finding import HARMFUL_LAYER
from weir.advise.findings.registry import BY_NAME, FINDINGS
from weir.advise.frame.saving import NOTHING, Range
from weir.advise.probes import probes
from weir.analysis.memory import return_memory
from weir.report.files.groups import FileGroup, file_groups
from weir.report.frame.build import Report as RunReport
from weir.report.frame.build import figure

SHARE = Limit("what a cure saves over the wall time of the run", 0.02, "share",
    "measured: repetitions of a run differ by 1 to 2 % on an idle node (docs/guide/nersc.md)")
LEAST = Limit("the same as a time", 0.02, "s",
    "chosen: nobody waits for less")
# what names of traces have for bytes that are no characters
_BYTES = re.compile(r"\\x[89a-f][0-9a-f]")
MOST_REST = 5  # groups of files
# Seconds of a run with rules: `weir run` asks whether bytes wait to be written back. Measured: 2 ms
# on an idle node, 11 ms at a load of 4 for each core.
OF_A_RUN = Range(0.002, 0.015)
# Of a request behind the call that makes it: a process that has waited goes on with cold caches,
# on a core that was idle. Measured with 20 programs at a load below 4 (bench/estimates.json): the
# time of runs without what their calls take became shorter by -20 to 41 us for each, median 8.
BEHIND_A_REQUEST = Range(0.0, 30e-6)
ALWAYS = (HARMFUL_LAYER.name,)  # a rule that does nothing is worth a word


@dataclass(frozen=True)
class Rest:
    """Files whose I/O no finding is about. critical_s: None where it is not known."""

    group: FileGroup
    critical_s: float | None

    @property
    def io_s(self) -> float:
        return self.group.ns / 1e9


@dataclass(frozen=True)
class Report:
    """advices: those worth most first; rest: I/O time that they do not explain, likewise."""

    facts: Facts
    advices: tuple[Advice, ...]
    rest: tuple[Rest, ...]

    @cached_property
    def rules(self) -> tuple[Advice, ...]:
        """Those whose rules are used, in the order of a file of rules: the first that matches a
        file decides. Of two for one file the one that is worth more."""
        taken: set[str] = set()
        chosen = []
        for one in self.advices:
            if one.rule is None or one.rule.unusable or not set(one.paths) - taken:
                continue
            taken |= set(one.paths)
            chosen.append(one)
        return tuple(sorted(chosen, key=lambda one: one.rule.path.count("*")))  # narrow ones first

    @property
    def together_s(self) -> float:
        """Seconds that all findings are worth; on files that two are about, the one that is worth
        more. Those of I/O are never worth more than all I/O that delays the run."""
        io = others = 0.0
        for one, part in parts(self.facts, self.advices):
            if BY_NAME[one.finding].shrinks in ("computing", STARTS):
                others += one.saving.worth
            else:
                io += part * one.saving.worth
        files = self.facts.files
        critical_ns = files.critical_of(files)
        if files and critical_ns is not None:
            io = min(io, critical_ns / 1e9)
        return min(io + others, self.facts.wall_s)

    @property
    def expected(self) -> Range:
        """Seconds of the run that all rules together save; of I/O where critical time is not
        known. Never more than all I/O that delays the run."""
        return together(self.facts, self.rules).at_most(self.facts.wall_s)


def parts(facts: Facts, advices: Sequence[Advice]) -> Iterator[tuple[Advice, float]]:
    """Those worth most first, each with the part, 0 to 1, of the I/O time of its files that is on
    files of none before it: 1 where it is about no file."""
    taken: set[str] = set()
    for one in sorted(advices, key=lambda one: -one.saving.worth):
        paths = set(one.paths)
        left = paths - taken
        taken |= paths
        yield one, 1.0 if left == paths else _time_on(facts, left) / _time_on(facts, paths)


def _time_on(facts: Facts, paths: Iterable[str]) -> float:
    """ns by which I/O on these files delays the run, or that it takes; never 0 for a file."""
    files, paths = facts.files, list(paths)
    ns = files.ns if files.critical_ns is None else files.critical_ns
    return float(ns[files.mask(paths)].sum()) + len(paths)


def together(facts: Facts, rules: Sequence[Advice]) -> Range:
    """The same of some rules, less what a run with rules takes that one without does not, and at
    most with what each request costs behind its call."""
    whole = NOTHING
    for one, part in parts(facts, rules):
        whole += (one.saving.critical or one.saving.active or one.saving.io).times(part)
        whole += BEHIND_A_REQUEST.times(part * one.saving.requests / max(1, facts.movers))
    cost = OF_A_RUN if rules else NOTHING
    return Range(max(0.0, whole.low - cost.high), max(0.0, whole.high - cost.low))


def is_worth_it(facts: Facts, one: Advice) -> bool:
    return (one.finding in ALWAYS
        or one.saving.worth >= max(SHARE.value * facts.wall_s, LEAST.value))


@figure
def findings_of(report: RunReport) -> Report:
    """The same for `weir report`, its JSON and its page. A report of one rank has no findings:
    these are of all ranks."""
    facts = Facts(report, probes())
    return_memory()
    return advise(facts) if report.choice.rank is None else Report(facts, (), ())


def advise(facts: Facts) -> Report:
    """Everything that is worth a line."""
    every = [_checked(one) for finding in FINDINGS for one in finding.find(facts)]
    found = sorted((one for one in every if is_worth_it(facts, one)),
        key=lambda one: -one.saving.worth)
    return Report(facts, tuple(found), tuple(_rest(facts, found)))


def _checked(one: Advice) -> Advice:
    """A file of rules is UTF-8, and the names of files need not be."""
    if one.rule is None or one.rule.unusable or not _BYTES.search(one.rule.path):
        return one
    return replace(one, rule=replace(one.rule,
        unusable="the name is not UTF-8, and a file of rules is; write ? for each byte that is "
                 "shown as \\x"))


def _rest(facts: Facts, found: Sequence[Advice]) -> list[Rest]:
    explained = {path for one in found for path in one.paths}
    made = []
    for group in file_groups(facts.report):
        if not explained.isdisjoint(group.members):
            continue
        critical_ns = facts.files.critical_of(group.members)
        rest = Rest(group, None if critical_ns is None else critical_ns / 1e9)
        cost = rest.io_s if rest.critical_s is None else rest.critical_s
        if cost >= max(SHARE.value * facts.wall_s, LEAST.value):
            made.append(rest)
    return sorted(made, key=lambda one: -(one.critical_s or one.io_s))[:MOST_REST]


def rule_of(one: Advice) -> Rule:
    assert one.rule is not None
    return one.rule
