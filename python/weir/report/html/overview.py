# SPDX-License-Identifier: Apache-2.0
"""The sentences that matter, and the figures beside them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import datetime, timezone
from itertools import islice

from weir.analysis.names import shown
from weir.report.build import Report, StepReport
from weir.report.html.figures import amount, number, seconds, share
from weir.report.html.groups import FileGroup
from weir.report.html.section import Section, rendered
from weir.report.notes import notes

MOST_SENTENCES = 4
UNEVEN = 1.5  # a task's or a step's I/O seconds over the mean: worth a sentence
NOTABLE = 0.1  # a share worth a sentence
MANY = 1000  # requests: below that it does not matter how small they are
# Sentences without which the figures mislead: they stand above them.
GRAVE = re.compile(
    r"INCOMPLETE|damaged|LOST BYTES"
    r"|step [^:]*: (?:\d+ of \d+ processes did not end in order|the command (?:ended with|was killed)|no trace file|\d+ calls have no record)"
)


def overview(report: Report, groups: list[FileGroup]) -> Section:
    told = [(GRAVE.match(sentence) is not None, sentence) for sentence in notes(report)]
    return Section(
        "overview",
        "Overview",
        rendered("overview.j2", sentences=list(islice(sentences(report, groups), MOST_SENTENCES)), cards=_cards(report), notes=told),
    )


def heading(report: Report) -> dict[str, str]:
    """What the head of the page says of the run."""
    tasks = max((sum(rank >= 0 for rank in step.ranks) for step in report.steps), default=0)
    nodes = max((len(step.data.files) for step in report.steps), default=0)
    started = min((step.started_ns for step in report.steps if step.started_ns), default=0)
    when = datetime.fromtimestamp(started // 10**9, timezone.utc).strftime("%Y-%m-%d %H:%M UTC") if started else ""
    parts = [_count(len(report.steps), "step"), _count(tasks, "task"), _count(nodes, "node"), when]
    return {"run": os.path.basename(os.path.abspath(report.path)), "facts": " · ".join(filter(None, parts))}


def _count(count: int, what: str) -> str:
    return f"{number(count)} {what}{'' if count == 1 else 's'}"


def _cards(report: Report) -> list[tuple[str, str, str]]:
    """Name, figure, remark."""
    wall, whole = report.wall_ns / 1e9, report.all
    cards = [("Wall clock", seconds(wall), _count(len(report.steps), "step"))]
    if report.active_ns is not None:
        active = report.active_ns / 1e9
        who = "At least one task" if report.choice.rank is None else f"Task {report.choice.rank}"
        cards.append((f"{who} in I/O", seconds(active), f"{share(active, wall)} of the wall clock"))
    if report.choice.rank is None:
        in_task0 = f"{share(report.task0.seconds, whole.seconds)} of it in task 0" if whole.ns else ""
        cards.append(("I/O of all tasks together", seconds(whole.seconds), in_task0))
    else:
        cards.append((f"I/O of task {report.choice.rank}", seconds(whole.seconds), "the only one on this page"))
    read, written = (int(report.columns.moved[report.columns.by_code(code)].sum()) for code in "RW")
    cards.append(("Moved", amount(whole.bytes), f"{amount(read)} read, {amount(written)} written"))
    cards.append(("Calls", number(whole.calls), _count(whole.files, "file") if whole.files is not None else ""))
    return cards


def sentences(report: Report, groups: list[FileGroup]) -> Iterator[str]:
    """What a reader in a hurry must know, the most important first."""
    told = (_time(report), _paid(report, groups), _step(report), _files(report, groups), _balance(report), _small(report))
    yield from filter(None, told)


def _time(report: Report) -> str:
    wall, whole = report.wall_ns / 1e9, report.all.seconds
    if not report.all.calls:
        return f"No I/O on files was recorded in the {seconds(wall)} of the run."
    if report.active_ns is None:
        return f"All tasks together spent {seconds(whole)} in I/O during the {seconds(wall)} of the run."
    active = report.active_ns / 1e9
    who = "at least one task" if report.choice.rank is None else f"task {report.choice.rank}"
    return (
        f"In {seconds(active)} of the run's {seconds(wall)} ({share(active, wall)}) {who} was in I/O: "
        "the most that I/O without any cost could save."
    )


def _paid(report: Report, groups: list[FileGroup]) -> str | None:
    """What the run would have been shorter without I/O, where MPI was recorded (docs/guide/waits.md); of all tasks, as waits are. And the files
    that belong together that it waits for most: each of them alone may take little."""
    if report.choice.rank is not None:
        return None
    waits = [found for step in report.steps if (found := step.synchronisation.waits) is not None]
    paid = sum(one.paid_ns for one in waits)
    by_file: dict[str, int] = {}
    for one in waits:
        for file in one.files:
            by_file[file.file] = by_file.get(file.file, 0) + file.paid_ns
    if not paid or not by_file:
        return None
    whole = {one: sum(by_file.get(file, 0) for file in one.members) for one in groups}
    most = max(whole, key=lambda one: whole[one], default=None)
    file = max(by_file, key=lambda name: by_file[name])
    if most is not None and most.files > 1 and whole[most] > by_file[file]:
        worst, ns = f"{number(most.files)} files {most.name}", whole[most]
    else:
        worst, ns = f"the file {shown(file, report.cwd)}", by_file[file]
    return (
        f"The run waits for {seconds(paid / 1e9)} of it ({share(paid, report.wall_ns)} of the run), as the waits in MPI show; the greatest part, "
        f"{seconds(ns / 1e9)}, for {worst}."
    )


def _step(report: Report) -> str | None:
    """The step that has much more active time than its share, or I/O time where that is not known."""
    if len(report.steps) < 2:
        return None

    def cost(step: StepReport) -> float:
        return (step.active_ns if report.active_ns is not None else step.all.ns) / 1e9

    most = max(report.steps, key=cost)
    whole = sum(map(cost, report.steps))
    if not whole or cost(most) * len(report.steps) < UNEVEN * whole:
        return None
    return f"Step {most.name} has {share(cost(most), whole)} of the I/O time of all steps: {seconds(cost(most))} of its {seconds(most.wall_ns / 1e9)}."


def _files(report: Report, groups: list[FileGroup]) -> str | None:
    """The file, or the files that belong together, with the most time."""
    if not groups or not groups[0].ns:
        return None
    most = groups[0]
    whose = f"The file with the most I/O time is {most.name}" if most.files == 1 else f"Most I/O time goes to {number(most.files)} files {most.name}"
    size = most.bytes_read + most.bytes_written
    moved = f" and {amount(size)}" if size else ""
    return (
        f"{whose}: {seconds(most.ns / 1e9)} in {number(most.calls)} calls{moved}, {share(most.ns, report.all.ns)} of the time of all files."
    )


def _balance(report: Report) -> str | None:
    """One task that does much more than its share."""
    by_rank: dict[int, float] = {}
    for step in report.steps:
        for rank, one in step.by_rank.items():
            if rank >= 0:
                by_rank[rank] = by_rank.get(rank, 0.0) + one.seconds
    mean = sum(by_rank.values()) / len(by_rank) if by_rank else 0.0
    if len(by_rank) < 2 or not mean:
        return None
    rank = max(by_rank, key=lambda one: by_rank[one])
    if by_rank[rank] < UNEVEN * mean:
        return None
    return f"Task {rank} spends {by_rank[rank] / mean:.1f} times as long in I/O as a task does on average."


def _small(report: Report) -> str | None:
    found = report.requests
    if found.small_share is None or found.small_share < NOTABLE or found.of_app < MANY:
        return None
    return f"{share(found.small_app, found.of_app)} of the {number(found.of_app)} reads and writes ask for less than 4 KiB."
