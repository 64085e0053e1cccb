# SPDX-License-Identifier: Apache-2.0
"""The section of the page with the sentences that matter, and the figures beside them."""

from __future__ import annotations

from itertools import islice

from weir.report.files.groups import FileGroup
from weir.report.frame.amounts import amount, number, seconds, share
from weir.report.frame.build import Report
from weir.report.frame.section import Section, rendered
from weir.report.notes import notes
from weir.report.sentences import count, is_grave, sentences

MOST_SENTENCES = 4


def overview(report: Report, groups: list[FileGroup]) -> Section:
    grave = [(is_grave(sentence), sentence) for sentence in notes(report)]
    return Section(
        "overview",
        "Overview",
        rendered("overview.j2", sentences=list(islice(sentences(report, groups), MOST_SENTENCES)),
            cards=_cards(report), notes=grave),
    )


def _cards(report: Report) -> list[tuple[str, str, str]]:
    """Name, figure, remark."""
    wall, whole = report.wall_ns / 1e9, report.all
    cards = [("Wall clock", seconds(wall), count(len(report.steps), "step"))]
    if report.active_ns is not None:
        active = report.active_ns / 1e9
        who = "At least one rank" if report.choice.rank is None else f"Rank {report.choice.rank}"
        cards.append((f"{who} in I/O", seconds(active), f"{share(active, wall)} of the wall clock"))
    if report.choice.rank is None:
        in_rank0 = (
            f"{share(report.rank0.seconds, whole.seconds)} of it in rank 0" if whole.ns else ""
        )
        cards.append(("I/O of all ranks together", seconds(whole.seconds), in_rank0))
    else:
        cards.append((f"I/O of rank {report.choice.rank}", seconds(whole.seconds),
            "the only one on this page"))
    read, written = (int(report.columns.moved[report.columns.by_code(code)].sum()) for code in "RW")
    cards.append(("Moved", amount(whole.bytes), f"{amount(read)} read, {amount(written)} written"))
    cards.append(("Calls", number(whole.calls), count(whole.files, "file")
        if whole.files is not None else ""))
    return cards
