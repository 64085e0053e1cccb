# SPDX-License-Identifier: Apache-2.0
"""Two runs beside each other as a page: what changed in sentences and figures, both jobs, pictures
on common axes, and the tables of the terminal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from weir.compare.compute import FilePair, Finding, Side, StepPair, ratio
from weir.compare.sentences import comparison_sentences, times
from weir.compare.table import Comparison, comparison_notes, comparison_tables
from weir.report.frame.amounts import amount, fitted, number, seconds
from weir.report.frame.build import Report
from weir.report.frame.section import asset
from weir.report.html import document
from weir.report.html.bars import TIME_LEGEND, time_parts
from weir.report.html.chart import Frame, Line, Mark, round_step
from weir.report.html.job import job_facts
from weir.report.html.pictures import LONGEST_NAME, over_time_pictures
from weir.report.sentences import heading, is_grave

MOST_STEPS, MOST_FILES, MOST_DOTS = 12, 7, 64
_KINDS = ("base", "judged")  # classes of the colours of A and of B
_FRAME = Frame(400, 230, left=52, right=384, top=12, bottom=196, columns=True,
    along="ranks, those with most I/O time first, per cent")
_SORT = "for (const table of document.querySelectorAll('table.sortable')) makeSortable(table);"


@dataclass(frozen=True)
class FactPair:
    """What is recorded of both jobs."""

    name: str
    a: str
    b: str


@dataclass(frozen=True)
class Card:
    name: str
    a: str
    b: str
    remark: str


@dataclass(frozen=True)
class SideBar:
    """A or B of a row: parts with their class, in per cent of the longest bar."""

    side: str
    parts: tuple[tuple[str, float], ...]
    figure: str


@dataclass(frozen=True)
class Row:
    name: str
    whole: str
    sides: tuple[SideBar, ...]
    change: str


@dataclass(frozen=True)
class RankCurves:
    title: str
    frame: Frame
    curves: list[Line]


def comparison_page(one: Comparison, top: int | None = 20) -> str:
    """The whole page. top: rows of tables of files."""
    every = comparison_notes(one)
    grave = [note for note in every if is_grave(note.partition(": ")[2])]
    pictures = zip("AB", over_time_pictures((one.a, one.b)))
    steps, is_some = _steps(one.steps)
    values = {
        "runs": [(name, heading(report), report.path)
            for name, report in (("A", one.a), ("B", one.b))],
        "failed": [_failed(found) for found in one.failed],
        "grave": grave,
        "notes": [note for note in every if note not in grave],
        "sentences": list(comparison_sentences(one)),
        "cards": _cards(one.total),
        "facts": list(_facts(one.a, one.b)),
        "legend": TIME_LEGEND,
        "steps": steps,
        "steps_remark": is_some,
        "over_time": [(side, line) for side, line in pictures if line is not None],
        "ranks": _ranks(one.total),
        "files": _files(one.files),
        "tables": list(comparison_tables(one, top)),
    }
    title = f"{heading(one.b)['run']} compared with {heading(one.a)['run']}"
    return document("compare.j2", title, [asset("sort.js"), _SORT], "", values)


def _failed(found: Finding) -> str:
    by = f"B - A is {found.value:+.6g}" if found.threshold.is_difference else (
        f"B / A is {found.value:.6g}")
    return f"FAILED: {found.threshold.text} in {found.step}: A {found.a:.6g}, B {found.b:.6g}; {by}"


def _facts(a: Report, b: Report) -> Iterator[FactPair]:
    for of_a, of_b in zip(job_facts(a), job_facts(b)):
        yield FactPair(of_a.name, of_a.text, of_b.text)


def _cards(total: StepPair) -> list[Card]:
    """What both runs know of the steps that they have in common."""
    figures = (
        ("Wall time", "wall", seconds), ("I/O delays the run by", "critical", seconds),
        ("I/O time of a rank, mean", "seconds/rank", seconds), ("Moved", "bytes", amount),
        ("Calls", "calls", number),
    )  # fmt: skip
    made = []
    for name, figure, text in figures:
        a, b = total.values(figure)
        if a is not None and b is not None:
            made.append(Card(name, text(a), text(b), times(ratio(a, b))))
    return made


def _steps(pairs: Sequence[StepPair]) -> tuple[list[Row], str]:
    """Of many steps those whose wall time changed most, in their order."""
    both = [(pair, pair.a, pair.b) for pair in pairs if pair.a is not None and pair.b is not None]
    kept = sorted(both, key=lambda one: -abs(one[2].wall_ns - one[1].wall_ns))[:MOST_STEPS]
    names = {pair.name for pair, _, _ in kept}
    longest = max((side.wall_ns for _, a, b in kept for side in (a, b)), default=0) or 1
    rows = [
        Row(pair.name, pair.name, tuple(_side_bar(name, side, longest)
            for name, side in (("A", a), ("B", b))), times(ratio(a.wall_ns, b.wall_ns)))
        for pair, a, b in both
        if pair.name in names
    ]
    is_some = f"{len(rows)} of {len(both)} steps: those whose time changed most" if (
        len(rows) < len(both)) else ""
    return rows, is_some


def _side_bar(name: str, side: Side, longest: int) -> SideBar:
    parts = time_parts(side.wall_ns, side.active_ns, side.critical_ns)
    return SideBar(name, tuple((kind, 100 * ns / longest) for kind, ns in parts),
        seconds(side.wall_ns / 1e9))


def _ranks(total: StepPair) -> RankCurves | None:
    """I/O time of each rank, in falling order, so that runs of different numbers of ranks lie over
    one another. None where neither has several ranks."""
    sums = [_io_of_ranks(side) for side in (total.a, total.b) if side is not None]
    if len(sums) < 2 or max(map(len, sums)) < 2 or not all(one.size and one[0] for one in sums):
        return None
    most = max(float(one[0]) for one in sums)
    unit, scale = ("s", 1.0) if most >= 1 else ("ms", 1e3)
    step = round_step(most * scale, 5)
    high = step * -(-most * scale // step)
    curves = [
        _rank_curve(f"{name}, {number(len(one))} ranks", kind, one, scale / high)
        for name, kind, one in zip("AB", _KINDS, sums)
    ]
    values = [i * step for i in range(round(high / step) + 1)]
    rises = [Mark(_FRAME.y(value / high), f"{value:g}") for value in values]
    ends = [Mark(_FRAME.x(part / 4), f"{25 * part}") for part in range(5)]
    return RankCurves(f"I/O time of the ranks, {unit}", _FRAME.marked(rises, ends), curves)


def _io_of_ranks(side: Side) -> np.ndarray:
    """Seconds, the longest first."""
    sums: dict[int, int] = defaultdict(int)
    for ranks in side.ranks:
        for rank, one in ranks.items():
            sums[rank] += one.ns
    return np.sort(np.array([*sums.values()], float))[::-1] / 1e9


def _rank_curve(name: str, kind: str, falling: np.ndarray, scale: float) -> Line:
    """Each rank is a step as wide as its share of the ranks; neighbours of one height are one."""
    heights = [round(_FRAME.y(one * scale), 1) for one in falling]
    path = []
    for at, height in enumerate(heights):
        ends = (round(_FRAME.x(part / len(heights)), 1) for part in (at, at + 1))
        path += [f"{place},{height}" for place in ends]
    some = range(len(heights)) if len(heights) <= MOST_DOTS else ()
    dots = tuple(
        (round(_FRAME.x((at + 0.5) / len(heights)), 1), heights[at],
            f"{name}: {seconds(falling[at])}")
        for at in some
    )
    return Line(name, kind, " ".join(dict.fromkeys(path)), dots)


def _files(pairs: Sequence[FilePair]) -> list[Row]:
    """Those whose I/O time changed most."""
    most = sorted((pair for pair in pairs if pair.grown_ns),
        key=lambda pair: (-abs(pair.grown_ns), pair.text))[:MOST_FILES]
    longest = max((side.ns for pair in most for side in (pair.a, pair.b)), default=0) or 1
    return [
        Row(
            fitted(pair.text, LONGEST_NAME), pair.text,
            tuple(
                SideBar(name, ((kind, 100 * side.ns / longest),),
                    seconds(side.ns / 1e9) if side.files else "not used")
                for name, kind, side in zip("AB", _KINDS, (pair.a, pair.b))
            ),
            times(ratio(pair.a.ns, pair.b.ns)) if pair.a.files and pair.b.files else "",
        )
        for pair in most
    ]  # fmt: skip
