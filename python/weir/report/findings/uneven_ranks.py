# SPDX-License-Identifier: Apache-2.0
"""Finding uneven-ranks: one rank spends much longer in I/O than the others."""

from __future__ import annotations

from weir.report.findings.finding import Finding, Limit
from weir.report.frame.build import Report

RATIO = Limit(
    meaning="I/O time of the rank over the mean of all ranks",
    value=1.5,
    reason="chosen: smaller differences are usual among ranks that do the same",
)
SHARE = Limit(
    meaning="I/O time of the rank over the wall time of the run",
    value=0.001,
    reason="chosen: with less it does not matter which rank it is",
)


def find(report: Report) -> str | None:
    by_rank: dict[int, float] = {}
    for step in report.steps:
        for rank, one in step.by_rank.items():
            if rank >= 0:
                by_rank[rank] = by_rank.get(rank, 0.0) + one.seconds
    mean = sum(by_rank.values()) / len(by_rank) if by_rank else 0.0
    if len(by_rank) < 2 or not mean:
        return None
    rank = max(by_rank, key=lambda one: by_rank[one])
    ratio = by_rank[rank] / mean
    if ratio < RATIO.value or by_rank[rank] * 1e9 < SHARE.value * report.wall_ns:
        return None
    who = report.names.ranks[rank].title
    return f"{who[0].upper()}{who[1:]} spends {ratio:.1f} times as long in I/O as a rank does on average."


UNEVEN_RANKS = Finding(
    name="uneven-ranks",
    asks="Does one rank spend much longer in I/O than the others?",
    limits=(RATIO, SHARE),
    page="guide/waits.md",
    find=find,
)
