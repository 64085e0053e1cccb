# SPDX-License-Identifier: Apache-2.0
"""The first screen of the page, which prints on two sheets: the job, the verdict, five figures,
three pictures."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import numpy as np

from weir.report.files.groups import FileGroup
from weir.report.frame.programs import one_of
from weir.report.frame.amounts import amount, number, seconds, share
from weir.report.frame.build import Report
from weir.report.frame.section import Section, rendered
from weir.report.html.findings import MOST_LINES, Shown
from weir.report.html.job import job_facts
from weir.report.html.pictures import files_that_matter, over_time_picture
from weir.report.html.ranks import rank_picture
from weir.report.notes import notes
from weir.report.overview import MOST_SENTENCES
from weir.report.sentences import LEAST_SHARE, count, is_grave, sentences
from weir.report.steps.table import mean_rank_ns
from weir.report.waits.summary import synchronisation_of
from weir.report.wall.critical import critical_ns

MOST_GRAVE = 4  # on the first screen: with more of them, none is read
_METADATA = "OCM"  # classes of operations: opens, closes, and others that move no bytes


@dataclass(frozen=True)
class Card:
    name: str
    figure: str
    remark: str = ""


def overview(report: Report, groups: list[FileGroup], shown: list[Shown]) -> Section:
    """shown: all findings; the first ones take the place of a sentence."""
    found = notes(report)
    grave = [note for note in found if is_grave(note)]
    others = grave[MOST_GRAVE:] + [note for note in found if not is_grave(note)]
    ranks = rank_picture(report)
    body = rendered(
        "overview.j2",
        facts=job_facts(report),
        sentences=list(islice(sentences(report, groups), MOST_SENTENCES - bool(shown))),
        findings=shown[:MOST_LINES],
        more=max(0, len(shown) - MOST_LINES),
        cards=_cards(report),
        grave=grave[:MOST_GRAVE],
        notes=others,
        ranks=ranks,
        line=over_time_picture(report),
        files=files_that_matter(report, groups),
    )
    return Section("overview", "Verdict", body, data=ranks.data if ranks is not None else {})


def _cards(report: Report) -> list[Card]:
    wall, whole = report.wall_ns, report.all
    cards = [Card("Wall time", seconds(wall / 1e9), count(len(report.steps), "step"))]
    if report.choice.rank is None:
        mean = mean_rank_ns(report)
        cards.append(Card("I/O time of a rank, mean", seconds(mean / 1e9),
            "; ".join(filter(None, [f"{share(mean, wall)} of the wall time", _busiest(report)]))))
        cards.append(_delay(report))
    else:
        cards.append(Card(f"I/O time of {report.choice.who}", seconds(whole.seconds),
            f"{share(whole.ns, wall)} of the wall time"))
        cards.append(_active(report))
    return [*cards, _moved(report), _metadata(report)]


def _busiest(report: Report) -> str:
    """The rank with most I/O time, where there are several. The mean counts programs without a
    rank as well: where they have a part of it, it may be above the time of any rank."""
    sums: dict[int, int] = {}
    others = 0.0
    for step in report.steps:
        for rank, one in step.by_rank.items():
            if rank >= 0:
                sums[rank] = sums.get(rank, 0) + one.ns
            else:
                others += one.ns / max(1, step.rank_count)
    if len(sums) < 2 or not any(sums.values()):
        return ""
    most = max(sums, key=lambda rank: (sums[rank], -rank))
    figure = f"{seconds(sums[most] / 1e9)}, {report.names.ranks[most].title}"
    mean = mean_rank_ns(report)
    if others < LEAST_SHARE * mean:
        # none need reach the mean where steps have different ranks
        return f"most: {figure}" if mean <= sums[most] + others else ""
    return f"of it programs without a rank: {seconds(others / 1e9)}; most of the ranks: {figure}"


def _delay(report: Report) -> Card:
    """Critical I/O time, and how long ranks wait for it; without records of MPI the active time."""
    critical = critical_ns(report)
    if critical is None:
        return _active(report)
    waits = [synchronisation_of(step).waits for step in report.steps]
    waited = sum(one.waited_ns for one in waits if one is not None)
    of = f"{share(critical, report.wall_ns)} of the wall time"
    waiting = f"waits caused by I/O: {seconds(waited / 1e9)} of all ranks"
    return Card("I/O delays the run by", seconds(critical / 1e9), f"{of}; {waiting}")


def _active(report: Report) -> Card:
    who = f"At least one {one_of(report)}"
    if report.choice.rank is not None:
        who = report.choice.subject
    if report.active_ns is None:
        return Card(f"{who} in I/O", "not recorded", "needs single calls: level trace")
    active = report.active_ns
    return Card(f"{who} in I/O", seconds(active / 1e9),
        f"{share(active, report.wall_ns)} of the wall time")


def _moved(report: Report) -> Card:
    """Bytes, and the rate of a rank while it is in reads or in writes."""
    columns = report.sums
    masks = [columns.by_code(code) for code in "RW"]
    moved = [int(columns.moved[mask].sum()) for mask in masks]
    times = [int(columns.own_ns[mask].sum()) for mask in masks]
    rates = [
        f"{amount(count * 1e9 / ns)}/s {word}"
        for count, ns, word in zip(moved, times, ("in reads", "in writes"))
        if count and ns
    ]
    remark = f"a rank: {', '.join(rates)}" if rates else ""
    return Card("Read | written", " | ".join(map(amount, moved)), remark)


def _metadata(report: Report) -> Card:
    columns = report.sums
    mask = columns.by_code(_METADATA)
    calls, ns = int(columns.app_calls[mask].sum()), int(columns.own_ns[mask].sum())
    whole = int(np.sum(columns.own_ns))
    remark = f"of {number(report.all.calls)} calls; {share(ns, whole)} of the I/O time"
    return Card("Metadata calls", number(calls), remark if report.all.calls else "")
