# SPDX-License-Identifier: Apache-2.0
"""The programs of a step: parallel ones with their ranks, others with their processes; and the
words in which the first line of a report, and the first screen of the page, state them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from weir.analysis.worlds import SHELLS
from weir.report.frame.amounts import number
from weir.report.frame.build import Report, StepReport, figure

MOST_NAMED = 3
LEAST_SHARE = 0.01  # of the step's I/O time or bytes: a program without ranks is worth a word


@dataclass(frozen=True)
class Program:
    """times: how often a parallel program was started with so many ranks; ranks 0: a program
    without any, of so many processes (as times)."""

    name: str
    ranks: int
    times: int
    ns: int = 0
    bytes: int = 0
    is_shell: bool = False  # runs a job script

    @property
    def text(self) -> str:
        if not self.ranks:
            return f"{number(self.times)} {plural('process', self.times)} of {self.name}"
        several = f"{number(self.times)} x " * (self.times > 1)
        return f"{several}{number(self.ranks)} {plural('rank', self.ranks)} of {self.name}"


def plural(word: str, count: int = 2) -> str:
    return word if count == 1 else f"{word}es" if word.endswith("s") else f"{word}s"


@figure
def programs_of(step: StepReport) -> tuple[Program, ...]:
    """Parallel programs in the order of their starts; then the others, most I/O time first."""
    data = step.data
    members = [m for m, is_chosen in zip(data.members, step.members) if is_chosen]
    seen = {one.world for one in members}
    worlds = Counter((one.name, one.ranks) for at, one in enumerate(data.worlds) if at in seen)
    # A process that becomes another program by exec is one of the last.
    last = {(one.file, one.process.pid): one for one in sorted(data.members,
        key=lambda one: one.process.start_mono_ns)}
    alone = [one for one in members if one.world < 0 and not one.is_launcher
        and last[one.file, one.process.pid] is one]
    pids: dict[str, set[tuple[int, int]]] = {}
    for one in alone:
        pids.setdefault(one.name, set()).add((one.file, one.process.pid))
    sums = {name: [0, 0] for name in pids}
    ns, moved = np.zeros((2, len(data.members)), np.int64)
    np.add.at(ns, step.of_members.member, step.of_members.own_ns)
    np.add.at(moved, step.of_members.member, step.of_members.moved)
    for member, its_ns, its_bytes in zip(data.members, ns.tolist(), moved.tolist()):
        if member.name in sums and member.world < 0:
            sums[member.name] = [sums[member.name][0] + its_ns, sums[member.name][1] + its_bytes]
    parallel = [Program(*key, times) for key, times in worlds.items()]
    shells = {one.name for one in alone if one.process.program in SHELLS}
    others = [Program(name, 0, len(its), *sums[name], name in shells) for name, its in pids.items()]
    return (*parallel, *sorted(others, key=lambda one: -one.ns))


def ranks_text(report: Report) -> str:
    """4 ranks; 4 ranks of pre, 4 ranks of model, 1 process of post; of the step with most."""
    step = max(report.steps, key=lambda one: (one.rank_count, int(one.members.sum())), default=None)
    if step is None:
        return "no process"
    found = programs_of(step)
    parallel = [one for one in found if one.ranks]
    others = [one for one in found if not one.ranks]
    if not parallel:
        return _of_script(others)
    if len(parallel) == 1 and parallel[0].times == 1:
        words = [f"{number(parallel[0].ranks)} {plural('rank', parallel[0].ranks)}"]
    else:
        words = [one.text for one in parallel]
        several = sum(one.times for one in parallel[MOST_NAMED:])
        if several:
            ranks = sum(one.ranks * one.times for one in parallel[MOST_NAMED:])
            words[MOST_NAMED:] = [f"{number(ranks)} ranks of {several} more"]
    whole = step.all
    matter = [
        one for one in others
        if not one.is_shell
        and (one.ns >= LEAST_SHARE * max(whole.ns, 1)
             or one.bytes >= LEAST_SHARE * max(whole.bytes, 1))
    ]  # fmt: skip
    words += [one.text for one in matter[:MOST_NAMED]]
    rest = sum(one.times for one in matter[MOST_NAMED:])
    return ", ".join(words + [f"{number(rest)} other {plural('process', rest)}"] * bool(rest))


def one_of(report: Report) -> str:
    """What a report counts: a rank, or a process where nothing is parallel."""
    return "rank" if any(step.data.worlds for step in report.steps) else "process"


def _of_script(programs: list[Program]) -> str:
    """Of a step without ranks."""
    count = sum(one.times for one in programs)
    if len(programs) < 2:
        return programs[0].text if programs else "no process"
    # One more is named as well: it takes no more room than the word for it.
    named = programs if len(programs) == MOST_NAMED + 1 else programs[:MOST_NAMED]
    rest = count - sum(one.times for one in named)
    words = [f"{number(one.times)} of {one.name}" for one in named]
    words += [f"{number(rest)} others"] * bool(rest)
    return f"{number(count)} processes ({', '.join(words)})"
