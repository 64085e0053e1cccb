# SPDX-License-Identifier: Apache-2.0
"""Speed-up over several runs as a page: the curves with the point at which each stops scaling, and
the wall time of each run by part."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from weir.report.frame.amounts import number, seconds, share
from weir.report.frame.section import asset
from weir.report.frame.table import Table
from weir.report.html import document
from weir.report.html.chart import Frame, Line, Mark
from weir.scaling.compute import Curve, RunTimes, Scaling
from weir.scaling.table import scaling_tables, stop_sentences

_FRAME = Frame(420, 300, left=44, right=406, top=14, bottom=266, along="ranks", columns=True)
_KINDS = ("read", "write")  # classes of colours of the curves
_PART_KINDS = ("wall", "active", "waiting", "read", "write", "other")
_SORT = "for (const table of document.querySelectorAll('table.sortable')) makeSortable(table);"
_LEAST_GAP = 24  # between the texts of two ticks

Place = Callable[[float], float]  # of a value on an axis


@dataclass(frozen=True)
class StopMark:
    x: float
    y: float
    text: str
    label_x: float
    label_y: float
    anchor: str


@dataclass(frozen=True)
class Chart:
    title: str
    frame: Frame
    curves: list[Line]
    ideal: str
    stops: list[StopMark]


@dataclass(frozen=True)
class Bar:
    label: str
    parts: list[tuple[str, float]]
    text: str
    figure: str


@dataclass(frozen=True)
class Group:
    """What belongs to one program: its curves in a chart, and the wall time of its runs by part."""

    heading: str
    sentences: list[str]
    chart: Chart
    parts: list[tuple[str, str]]
    bars: list[Bar]
    tables: list[Table]


def scaling_page(found: Scaling, stop_share: float) -> str:
    """The whole page of the runs of one program."""
    return scalings_page({"": found}, stop_share)


def scalings_page(found: Mapping[str, Scaling], stop_share: float, tables: Iterable[Table] = (),
        title: str = "", about: str = "") -> str:
    """Curves of several programs, or of one on several file systems, by heading. tables: of all of
    them, above the charts, which may be all that there is; title: instead of the number of runs;
    about: a sentence on the runs, below it."""
    runs = [run for one in found.values() for run in one.runs]
    values = {
        "heading": title, "about": about, "runs": len(runs),
        "least": number(min((run.ranks for run in runs), default=0)),
        "most": number(max((run.ranks for run in runs), default=0)),
        "notes": [f"{run.name}: {note}" for run in runs for note in run.notes],
        "tables": list(tables),
        "groups": [_group(heading, one) for heading, one in found.items()],
        "stop_share": share(stop_share, 1),
    }  # fmt: skip
    title = title or f"Scaling of {len(runs)} runs"
    return document("scaling.j2", title, [asset("sort.js"), _SORT], "", values)


def _group(heading: str, found: Scaling) -> Group:
    parts = _parts(found)
    return Group(heading, list(_sentences(found)), _chart(found),
        [(kind, part) for part, kind in parts.items()],
        list(_bars(_runs(found), parts)) if parts else [], list(scaling_tables(found)))


def _runs(found: Scaling) -> list[RunTimes]:
    """Those on curves, by ranks."""
    every = {id(point.run): point.run for curve in found.curves for point in curve.points}
    return sorted(every.values(), key=lambda run: (run.ranks, run.nodes))


def _sentences(found: Scaling) -> Iterator[str]:
    """Those of the terminal, as sentences of their own."""
    for curve in found.curves:
        texts = list(stop_sentences(curve))
        if texts and curve.placement:
            texts[0] = f"{curve.placement}: {texts[0]}"
        if texts:
            yield ". ".join(text[0].upper() + text[1:] for text in texts) + "."


def _chart(found: Scaling) -> Chart:
    points = [point for curve in found.curves for point in curve.points]
    ranks = sorted({point.run.ranks for point in points})
    least, most = ranks[0], max(ranks[-1], ranks[0] + 1)
    ups = [point.speedup for point in points if point.speedup > 0]
    low, high = min([1.0, *ups]), max([2.0, most / found.reference.ranks, *ups])

    def x(count: float) -> float:
        return round(_FRAME.x(math.log(count / least) / math.log(most / least)), 1)

    def y(speedup: float) -> float:
        return round(_FRAME.y(math.log(max(speedup, low) / low) / math.log(high / low)), 1)

    curves = []
    for curve, kind in zip(found.curves, _KINDS):
        dots = tuple(
            (x(one.run.ranks), y(one.speedup),
                f"{one.run.name}: {number(one.run.ranks)} ranks on {number(one.run.nodes)} nodes, "
                f"{seconds(one.run.wall_ns / 1e9)}, speed-up {one.speedup:.2f}")
            for one in curve.points
        )
        path = " ".join(f"{at},{up}" for at, up, _ in dots)
        curves.append(Line(curve.placement or "speed-up", kind, path, dots))
    ends = [(count, count / found.reference.ranks) for count in (least, most)]
    ideal = " ".join(f"{x(count)},{y(up)}" for count, up in ends)
    stopped = [curve for curve in found.curves if curve.stop is not None]
    stops = [_stop(curve, at, x, y) for at, curve in enumerate(stopped)]
    return Chart(
        f"Speed-up against {number(found.reference.ranks)} rank"
        + "s" * (found.reference.ranks != 1),
        _FRAME.marked(_rises(low, high, y), _apart(ranks, x)), curves, ideal, stops,
    )  # fmt: skip


def _stop(curve: Curve, at: int, x: Place, y: Place) -> StopMark:
    """At the last run that gained enough; the label where no curve is: on the left above the ideal,
    on the right at the bottom."""
    assert curve.stop is not None
    before = curve.stop.before
    speedup = next(one.speedup for one in curve.points if one.run is before)
    place, up, text = x(before.ranks), y(speedup), f"stops at {number(before.ranks)}"
    if place < _FRAME.width / 2:
        return StopMark(place, up, text, place + 5, _FRAME.top + 14 * (1 + at), "start")
    return StopMark(place, up, text, place - 5, _FRAME.bottom - 6 - 14 * at, "end")


def _rises(low: float, high: float, y: Place) -> Iterator[Mark]:
    """Powers of two, not closer than texts need."""
    last = math.inf
    for power in range(math.floor(math.log2(low)), math.ceil(math.log2(high)) + 1):
        value = 2.0**power
        if low <= value <= high * 1.001 and last - y(value) >= 14:
            last = y(value)
            yield Mark(last, f"{value:g}")


def _apart(ranks: Sequence[int], x: Place) -> Iterator[Mark]:
    last = -math.inf
    for count in ranks:
        is_free = x(count) - last >= max(_LEAST_GAP, 7 * len(str(count)))
        if is_free:
            last = x(count)
        yield Mark(x(count), number(count) if is_free else "")


def _parts(found: Scaling) -> dict[str, str]:
    """The class of the colour of each part; the smallest ones of many share the last."""
    order = sorted(found.parts, key=lambda part: -max(run.parts_ns[part] for run in _runs(found)))
    return {part: _PART_KINDS[min(at, len(_PART_KINDS) - 1)] for at, part in enumerate(order)}


def _bars(runs: Sequence[RunTimes], parts: dict[str, str]) -> Iterator[Bar]:
    longest = max(run.wall_ns for run in runs) or 1
    for run in runs:
        times = [(part, kind, run.parts_ns[part]) for part, kind in parts.items()]
        text = "; ".join(f"{part} {seconds(ns / 1e9)} ({share(ns, run.wall_ns)})"
            for part, _, ns in times)
        widths = [(kind, 100 * ns / longest) for _, kind, ns in times]
        label = f"{number(run.ranks)} on {number(run.nodes)}"
        yield Bar(label, widths, text, seconds(run.wall_ns / 1e9))
