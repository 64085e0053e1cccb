# SPDX-License-Identifier: Apache-2.0
"""Finding uneven-io: several ranks do I/O, and some of them much more than the others."""

from __future__ import annotations

from collections.abc import Iterator

from weir.advise.frame.facts import Facts
from weir.advise.frame.finding import Advice, Finding
from weir.advise.findings.serial_io.finding import DELAYS
from weir.advise.findings.serial_io.finding import SHARE as SERIAL
from weir.advise.frame.saving import Range, Saving
from weir.advise.frame.finding import Limit
from weir.report.frame.amounts import seconds
from weir.report.frame.build import StepReport
from weir.report.waits.summary import synchronisation_of

RATIO = Limit("I/O time of the slowest rank over the mean of all", 1.5, "times",
    "smaller differences are usual among ranks that do the same (finding uneven-ranks of the "
    "report)")


def _advice(step: StepReport) -> Iterator[Advice]:
    waits = synchronisation_of(step).waits
    ranks = {rank: one for rank, one in step.by_rank.items() if rank >= 0}
    if waits is None or len(ranks) < 2:
        return
    times = sorted(one.seconds for one in ranks.values())
    mean, moved = sum(times) / len(times), sum(one.bytes for one in ranks.values())
    is_serial = max(one.bytes for one in ranks.values()) >= SERIAL.value * moved
    critical_s, wall_s = waits.critical_ns / 1e9, step.wall_ns / 1e9
    if is_serial or times[-1] < RATIO.value * mean or critical_s < DELAYS.value * wall_s:
        return
    rank = max(ranks, key=lambda one: ranks[one].seconds)
    most = min(times[-1] - mean, critical_s)
    yield Advice(
        "uneven-io", f"{step.names.ranks[rank].title} in step {step.name}", (),
        f"it is in I/O for {seconds(times[-1])}, the mean rank for {seconds(mean)}; I/O "
        f"delays the step by {seconds(critical_s)}.",
        Saving(Range(0.0, 0.0), None, Range(0.0, most)),
        "Give each rank as many bytes, or as many files; let ranks with less to compute write.",
        step=step.name,
    )  # fmt: skip


def find(facts: Facts) -> Iterator[Advice]:
    for step in facts.report.steps:
        yield from _advice(step)


UNEVEN_IO = Finding(
    name="uneven-io",
    asks="Do some ranks have much more I/O than others that wait for them?",
    shrinks="imbalance",
    limits=(RATIO, DELAYS),
    page="guide/waits.md",
    table="ranks",
    cure="",
    decides="how well the file system serves all ranks at once",
    find=find,
)
