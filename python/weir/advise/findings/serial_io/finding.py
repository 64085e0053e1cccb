# SPDX-License-Identifier: Apache-2.0
"""Finding serial-io: one rank of a program moves nearly all bytes while the others wait."""

from __future__ import annotations

from collections.abc import Iterator

from weir.advise.frame.facts import Facts
from weir.advise.frame.finding import Advice, Finding
from weir.advise.frame.saving import Range, Saving
from weir.advise.frame.finding import Limit
from weir.report.frame.amounts import amount, seconds, share
from weir.report.frame.build import StepReport
from weir.report.waits.summary import synchronisation_of

SHARE = Limit("share of the step's bytes that one rank moves", 0.8, "share",
    "chosen: four times as much as all others together")
DELAYS = Limit("critical time of the I/O of the step, over its wall time", 0.05, "share",
    "chosen: with less, the others have their own work meanwhile")
LEAST_GAIN = 0.25  # of its critical time, by two aggregators or by one server that is late


def _busiest(step: StepReport) -> tuple[int, int, int] | None:
    """Rank, its bytes, all bytes."""
    ranks = {rank: one.bytes for rank, one in step.by_rank.items() if rank >= 0}
    whole = sum(ranks.values())
    if len(ranks) < 2 or not whole:
        return None
    rank = max(ranks, key=ranks.__getitem__)
    return rank, ranks[rank], whole


def _advice(facts: Facts, step: StepReport) -> Iterator[Advice]:
    found, waits = _busiest(step), synchronisation_of(step).waits
    if found is None or waits is None:
        return
    rank, moved, whole = found
    io_s, critical_s = step.by_rank[rank].seconds, waits.critical_ns / 1e9
    if moved < SHARE.value * whole or critical_s < DELAYS.value * step.wall_ns / 1e9:
        return
    most = critical_s * (1 - 1 / step.rank_count)
    active = Range(LEAST_GAIN * io_s, io_s * (1 - 1 / step.rank_count))
    yield Advice(
        "serial-io", f"{step.names.ranks[rank].title} in step {step.name}", (),
        f"it moves {amount(moved)}, {share(moved, whole)} of the bytes of the step, in "
        f"{seconds(io_s)}; I/O delays the step by {seconds(critical_s)}.",
        Saving(Range(0.0, active.high), active, Range(LEAST_GAIN * critical_s, most)),
        "Write by all ranks (MPI_File_write_all, parallel netCDF), or by servers (libweir, modes "
        "collective and servers).", step=step.name,
    )  # fmt: skip


def find(facts: Facts) -> Iterator[Advice]:
    for step in facts.report.steps:
        if not facts.is_collective(step):  # finding aggregators
            yield from _advice(facts, step)


SERIAL_IO = Finding(
    name="serial-io",
    asks="Does one rank move nearly all bytes while the others wait?",
    shrinks="I/O wait",
    limits=(SHARE, DELAYS),
    page="guide/waits.md",
    table="ranks",
    cure="",
    find=find,
)
