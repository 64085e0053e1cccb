# SPDX-License-Identifier: Apache-2.0
"""Finding too-many-cores: a program computes no faster with more ranks of a node, as where memory
bandwidth is the limit. It needs a run with steps of one program on several numbers of ranks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from weir.advise.frame.facts import Facts
from weir.advise.frame.finding import Advice, Finding, Limit
from weir.advise.frame.saving import NOTHING, Range, Saving
from weir.report.frame.amounts import seconds
from weir.report.frame.build import StepReport
from weir.report.wall.compute import wall_time_of

GAIN = Limit("computing time with fewer ranks over that with more, at most", 1.05, "times",
    "measured: repetitions of a run differ by 1 to 2 % on an idle node; twice as many ranks that "
    "all compute would halve it")
SAME = Limit("bytes that one step moves over those of the other, at most", 1.1, "times",
    "another amount of work moves another amount of bytes")


@dataclass(frozen=True)
class Tried:
    """One step of a program. computing_s: of the rank that computes longest."""

    step: StepReport
    each_node: float
    ranks: int
    computing_s: float
    bytes: int


def _tried(step: StepReport) -> tuple[tuple[str, int], Tried] | None:
    """By program and number of nodes."""
    wall = wall_time_of(step)
    if wall is None or step.rank_count < 2:
        return None
    programs = {step.data.members[int(at)].process.program for at in wall.locations.speaker}
    nodes = len(np.unique(np.asarray(wall.locations.node)))
    if len(programs) != 1:
        return None
    computing = int(wall.of_ranks.computing_ns.max(initial=0)) / 1e9
    return (programs.pop(), nodes), Tried(step, step.rank_count / nodes, step.rank_count, computing,
        step.all.bytes)


def _advice(best: Tried, one: Tried) -> Advice:
    saved_s = max(0.0, one.computing_s - best.computing_s)
    return Advice(
        "too-many-cores", f"step {one.step.name}", (),
        f"its {one.each_node:.0f} ranks of a node compute for {seconds(one.computing_s)}, the "
        f"{best.each_node:.0f} of step {best.step.name} for {seconds(best.computing_s)}: more cores "
        "make it no faster, as where memory bandwidth is the limit.",
        Saving(NOTHING, None, Range(0.0, saved_s)),
        f"Run it with {best.each_node:.0f} ranks of a node, spread over its sockets, and give the "
        "other cores to I/O servers.",
        step=one.step.name,
    )  # fmt: skip


def find(facts: Facts) -> Iterator[Advice]:
    found: dict[tuple[str, int], list[Tried]] = defaultdict(list)
    for step in facts.report.steps:
        if (one := _tried(step)) is not None:
            found[one[0]].append(one[1])
    for every in found.values():
        best = min(every, key=lambda one: one.each_node)
        for one in sorted(every, key=lambda one: one.each_node):
            is_same = one.bytes <= SAME.value * best.bytes and best.bytes <= SAME.value * one.bytes
            if one.each_node <= best.each_node or not is_same:
                continue
            if best.computing_s <= GAIN.value * one.computing_s:
                yield _advice(best, one)
            else:
                best = one


TOO_MANY_CORES = Finding(
    name="too-many-cores",
    asks="Does a program compute no faster with more ranks of a node?",
    shrinks="computing",
    limits=(GAIN, SAME),
    page="guide/olam.md",
    table="wall",
    cure="",
    decides="whether memory bandwidth is the limit",
    find=find,
)
