# SPDX-License-Identifier: Apache-2.0
"""Two reports beside each other, as tables and as JSON; what fails the comparison is left to
thresholds."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TextIO

from weir._errors import InputError
from weir.analysis.names import shown
from weir.analysis.ranks import ONLY_RANK
from weir.compare.compute import (
    FIGURES, FilePair, FileSide, Finding, RoutinePair, Side, StepPair, Threshold, check,
    home_directories, match_files, match_routines, plain_name, ratio,
)  # fmt: skip
from weir.report.files.compute import FileTotals, files_of
from weir.report.frame.build import Report, StepReport
from weir.report.frame.figures import megabytes, milliseconds, short, thousands
from weir.report.frame.table import Table
from weir.report.notes import LEFT_OUT, notes
from weir.report.processes.compute import is_complete
from weir.report.render import write_parts
from weir.report.requests.compute import requests_of
from weir.report.routines.compute import Routine, routine_table
from weir.report.waits.summary import synchronisation_of
from weir.report.wall.critical import critical_by_step


@dataclass(frozen=True)
class Comparison:
    """Steps that both runs have are in `steps` with both sides and make up `total`; a and b are
    reports of these steps alone."""

    a: Report
    b: Report
    steps: tuple[StepPair, ...]
    total: StepPair
    files: tuple[FilePair, ...]
    routines: tuple[RoutinePair, ...]
    findings: tuple[Finding, ...]
    is_complete: bool

    @property
    def failed(self) -> list[Finding]:
        return [one for one in self.findings if one.is_passed]


def compare(a: Report, b: Report, *, steps: Sequence[str] = (),
        thresholds: Sequence[Threshold] = ()) -> Comparison:
    """Compare two runs step by step; steps: these alone. Runs of one step each are compared
    whatever their steps are called.

    Raises InputError when the runs have no step in common, or not one that was asked for.
    """
    matched = _matched(a, b, steps)
    sides = {**_sides(a), **_sides(b)}
    pairs = tuple(StepPair(name, *(None if step is None else sides[id(step)] for step in both))
        for name, *both in matched)
    common = [both for _, *both in matched if None not in both]
    a, b = (replace(report, steps=tuple(both[side] for both in common))
        for side, report in enumerate((a, b)))
    total = StepPair("TOTAL", *(Side.added([sides[id(step)] for step in report.steps],
        report.all.files) for report in (a, b)))
    findings = tuple(one for threshold in thresholds for one in check(threshold, pairs, total))
    files = match_files(*_names(a, b))
    routines = match_routines(*(routine_table(report.sums).rows for report in (a, b)))
    return Comparison(a, b, pairs, total, tuple(files), tuple(routines), findings, is_complete(a)
        and is_complete(b))


def _matched(a: Report, b: Report,
        wanted: Sequence[str]) -> list[tuple[str, StepReport | None, StepReport | None]]:
    """Steps by name, in the order of the first run; then those that only the second one has."""
    of_a, of_b = ({step.name: step for step in report.steps} for report in (a, b))
    if not wanted and len(of_a) == len(of_b) == 1:
        (first,), (second,) = of_a.values(), of_b.values()
        return [(first.name if first.name == second.name else f"{first.name}/{second.name}", first,
            second)]
    for name in wanted:
        for report, steps in ((a, of_a), (b, of_b)):
            if name not in steps:
                raise InputError(f"{report.path}: no step {name!r}; it has {', '.join(steps)}")
    names = [name for name in dict.fromkeys((*of_a, *of_b)) if not wanted or name in wanted]
    if not of_a.keys() & of_b.keys():
        raise InputError(
            f"{a.path} and {b.path} have no step in common: {', '.join(of_a)} against "
            f"{', '.join(of_b)}; name one step's directory of each")
    return [(name, of_a.get(name), of_b.get(name)) for name in names]


def _sides(report: Report) -> dict[int, Side]:
    """Of each step, by its identity. Steps without MPI have a critical time in runs that have steps
    with MPI, as in weir report."""
    return {id(step): _side(step, delay)
        for step, delay in zip(report.steps, critical_by_step(report))}


def _side(step: StepReport, critical_ns: int | None) -> Side:
    ranks = {
        step.names.ranks[rank]: one for rank, one in step.by_rank.items() if rank >= 0
    }  # fmt: skip
    if not step.data.worlds and step.ranks:  # all programs of a script together
        ranks = {ONLY_RANK: step.all}
    waits = synchronisation_of(step).waits
    path_ns = None if waits is None else waits.path_ns
    return Side(step.wall_ns, step.active_ns, step.all, (ranks,), path_ns, critical_ns)


def _names(a: Report, b: Report) -> tuple[dict[str, FileTotals], dict[str, FileTotals]]:
    """Files of both runs by the name that the other run may have, too: below each run's working
    directory, or below the directories that have most bytes in common, or absolute, whichever makes
    files of more bytes, and of these more names, the same."""
    directories = home_directories(*({one.file: one.bytes for one in files_of(report)}
        for report in (a, b))) or (None, None)
    candidates = [
        tuple({shown(one.file, top): one for one in files_of(report)}
            for report, top in zip((a, b), tops))
        for tops in ((a.cwd, b.cwd), directories, (None, None))
    ]

    def common(names: tuple[dict[str, FileTotals], ...]) -> tuple[int, int]:
        plain = [defaultdict(int), defaultdict(int)]
        for side, files in zip(plain, names):
            for name, file in files.items():
                side[plain_name(name)] += file.bytes
        both = plain[0].keys() & plain[1].keys()
        return sum(side[name] for name in both for side in plain), len(both)

    return max(candidates, key=common)


def comparison_tables(one: Comparison, top: int | None = 20) -> Iterator[Table]:
    """Steps: time, what of it is critical I/O time, volume, per rank; routines; files whose time
    grew most; files whose requests or bytes changed most."""
    yield _time_table(one)
    if None not in one.total.values("critical"):
        yield _critical_table(one)
    yield _volume_table(one)
    yield _rank_table(one)
    yield _routine_table(one)
    grown = sorted((pair for pair in one.files if pair.grown_ns > 0),
        key=lambda pair: (-pair.grown_ns, pair.text))
    changed = sorted((pair for pair in one.files if pair.is_changed), key=_change)
    if grown:
        yield _file_table("Files whose time grew most", one, grown, top)
    if changed:
        yield _file_table("Files whose requests or bytes changed, by MB", one, changed, top)
    if one.findings:
        yield _finding_table(one)


def _change(pair: FilePair) -> tuple:
    return -abs(pair.b.bytes - pair.a.bytes), -abs(pair.b.calls - pair.a.calls), pair.text


Cells = tuple[str, ...]
_HEADS = {2: ("A", "B"), 3: ("A", "B", "B/A"), 4: ("A", "B", "B-A", "B/A")}


def _seconds(value: float) -> str:
    return short(value) if value >= 0 else f"-{short(-value)}"


def _gigabytes(value: float) -> str:
    return _seconds(value / 1e9)


def ratio_text(value: float | None) -> str:
    """Two decimals; three where these would say 1.00 of what is not equal."""
    if value is None:
        return "-"
    if math.isinf(value):
        return "new"
    return f"{value:.0f}" if value >= 100 else f"{value:.2f}" if round(value,
        2) != 1 or value == 1 else f"{value:.3f}"


def _both(values: tuple[float | None, float | None], text: Callable[[float], str],
        width: int = 3) -> Cells:
    """A and B; with width 3 also the ratio, with 4 the difference before it."""
    a, b = values
    cells = ["-" if value is None else text(value) for value in values]
    if width == 4:
        cells.append("-" if a is None or b is None else ("+" if b > a else "") + text(b - a))
    return (*cells, *([ratio_text(ratio(a, b))] if width > 2 else []))


def _step_table(title: str, one: Comparison,
        parts: Sequence[tuple[str, str, Callable[[float], str], int]],
        remarks: Cells = ()) -> Table:
    """A line for each step and the total; parts: heading, figure, how it is printed, number of
    columns."""

    def cells(pair: StepPair) -> Cells:
        return (pair.name, *(cell for _, figure, text, width in parts
            for cell in _both(pair.values(figure), text, width)))

    columns = ("<Step", *(head for *_, width in parts for head in _HEADS[width]))
    groups = (("", 1), *((heading, width) for heading, *_, width in parts))
    alone = [pair.name for pair in one.steps if pair.a is None or pair.b is None]
    left = (f"TOTAL is of the steps that both runs have; without {', '.join(alone)}",
        ) if alone else ()
    return Table(title, columns, tuple(map(cells, one.steps)), groups, (cells(one.total),),
        (*left, *remarks))


def _time_table(one: Comparison) -> Table:
    parts = (("Wall", "wall", _seconds, 4), ("Active sec", "active", _seconds, 4),
        ("I/O sec, all ranks", "seconds", _seconds, 4))
    return _step_table(f"Time: A is {one.a.path}, B is {one.b.path}", one, parts)


def _critical_table(one: Comparison) -> Table:
    parts = (("Critical", "critical", _seconds, 4), ("On critical path", "path", _seconds, 4))
    return _step_table("Critical I/O time, seconds", one, parts)


def _volume_table(one: Comparison) -> Table:
    parts = (("Calls", "calls", _count, 3), ("GB", "bytes", _gigabytes, 3),
        ("Files", "files", _count, 2))
    return _step_table("Volume, all ranks", one, parts)


def _count(value: float) -> str:
    return thousands(round(value))


def _rank_table(one: Comparison) -> Table:
    parts = (
        ("I/O sec", "seconds/rank", _seconds, 3), ("Calls", "calls/rank", _count, 3),
        ("MB", "bytes/rank", lambda value: short(value / 1e6), 3),
        ("Imbalance", "imbalance", lambda value: f"{value:.2f}", 2),
    )  # fmt: skip
    table = _step_table(
        "Per rank, mean; imbalance: I/O seconds of the busiest rank / mean",
        one, parts)

    def ranks(pair: StepPair) -> Cells:
        return tuple("-" if side is None else str(side.most_ranks) for side in (pair.a, pair.b))

    def busiest(pair: StepPair) -> Cells:
        return tuple("-" if side is None or side.busiest is None else side.busiest[0].label
            for side in (pair.a, pair.b))

    every = [*one.steps, one.total]
    lines = [(row[0], *ranks(pair), *row[1:], *busiest(pair))
        for row, pair in zip((*table.rows, *table.footer), every)]
    return replace(
        table, columns=("<Step", "A", "B", *table.columns[1:], "A", "B"), rows=tuple(lines[:-1]),
        footer=tuple(lines[-1:]),
        groups=(("", 1), ("Ranks", 2), *table.groups[1:], ("busiest", 2)),
    )  # fmt: skip


def _routine_table(one: Comparison) -> Table:
    def cells(pair: RoutinePair) -> Cells:
        a, b = pair.a, pair.b
        return (pair.routine, *_both((a.calls, b.calls), _count),
            *_both((a.bytes, b.bytes), _megabytes), *_both((a.ns, b.ns), _milliseconds))

    columns = ("<Routine", *_HEADS[3] * 3)
    small = [requests_of(report) for report in (one.a, one.b)]
    shares = ["-" if found.small_share is None else f"{100 * found.small_share:.1f} %"
        for found in small]
    remark = (
        f"requests of the application under 4 KiB: {small[0].small_app} ({shares[0]}) against "
        f"{small[1].small_app} ({shares[1]})"
    )
    groups = (("", 1), ("Calls", 3), ("MB", 3), ("ms", 3))
    return Table("Routines, all ranks", columns, tuple(map(cells, one.routines)), groups,
        remarks=(remark,), whole=columns[:1])


def _megabytes(value: float) -> str:
    return f"{megabytes(round(value)):.3f}"


def _milliseconds(value: float) -> str:
    return f"{milliseconds(round(value)):.3f}"


def _file_table(title: str, one: Comparison, every: Sequence[FilePair], top: int | None) -> Table:
    def cells(pair: FilePair) -> Cells:
        a, b = pair.a, pair.b
        files = (str(a.files or "-"), str(b.files or "-"))
        return (*_both((a.ns, b.ns), _milliseconds, 4), *_both((a.calls, b.calls), _count),
            *_both((a.bytes, b.bytes), _megabytes), *files, pair.text)

    columns = (*_HEADS[4], *_HEADS[3] * 2, "A", "B", "<File")
    groups = (("ms", 4), ("Calls", 3), ("MB", 3), ("files", 2), ("", 1))
    rows = tuple(map(cells, every[:top]))
    of = f" ({len(rows)} of {len(every)})" if len(rows) < len(every) else ""
    return Table(title + of, columns, rows, groups)


def _finding_table(one: Comparison) -> Table:
    def cells(found: Finding) -> Cells:
        value = f"{found.value:+.6g}" if found.threshold.is_difference else ratio_text(found.value)
        return (
            found.threshold.text,
            found.step,
            f"{found.a:.6g}",
            f"{found.b:.6g}",
            value,
            "FAILED" if found.is_passed else ("ok"),
        )

    return Table("Thresholds", ("<fails if", "<Step", "A", "B", "measured", "<"),
        tuple(map(cells, one.findings)))


def comparison_notes(one: Comparison) -> list[str]:
    """What must be known of both runs before their figures are compared."""
    found = [f"{name}: {sentence}" for name, report in (("A", one.a), ("B", one.b))
        for sentence in notes(report)]
    for pair, a, b in zip((pair for pair in one.steps if pair.a is not None and pair.b is not None),
            one.a.steps, one.b.steps):
        if a.level != b.level:
            found.append(f"step {pair.name} was recorded at level {a.level} in A and {b.level} in "
                         f"B: active time and files may be missing in one")
    return found


def render_comparison(one: Comparison, stream: TextIO, top: int | None = 20) -> None:
    """Print to a file or pipe as plain text, to a terminal with Rich. What the figures leave out
    comes last."""
    every = comparison_notes(one)
    left_out = [note for note in every if note.partition(": ")[2].startswith(LEFT_OUT)]
    parts: list[Table | str] = [*comparison_tables(one, top)]
    if left_out:
        parts.append("\n" + "\n".join(f"note: {note}" for note in left_out))
    write_parts([note for note in every if note not in left_out], parts, stream)


def comparison_json(one: Comparison) -> dict[str, Any]:
    """The same figures, exact; ratios to 0 are null."""
    return {
        "format": 1,
        "a": _run_json(one.a),
        "b": _run_json(one.b),
        "steps": [_pair_json(pair) for pair in one.steps],
        "total": _pair_json(one.total),
        "files": [
            {"file": pair.text, "a": _file_json(pair.a), "b": _file_json(pair.b),
                "seconds_grown": pair.grown_ns / 1e9}
            for pair in sorted(one.files, key=lambda pair: (-pair.grown_ns, pair.text))
        ],
        "routines": [{"routine": pair.routine, "a": _routine_json(pair.a),
            "b": _routine_json(pair.b)} for pair in one.routines],
        "small_requests": {
            side: {"calls": found.small_app, "of": found.of_app, "share": found.small_share}
            for side, found in (("a", requests_of(one.a)), ("b", requests_of(one.b)))
        },
        "thresholds": [
            {
                "text": found.threshold.text, "step": found.step, "figure": found.threshold.figure,
                "a": found.a, "b": found.b,
                "measured": _finite(found.value), "failed": found.is_passed,
            }
            for found in one.findings
        ],
        "failed": bool(one.failed),
        "complete": one.is_complete,
        "notes": comparison_notes(one),
    }  # fmt: skip


def _finite(value: float | None) -> float | None:
    return None if value is None or math.isinf(value) else value


def _run_json(report: Report) -> dict[str, Any]:
    return {"run": report.path, "steps": [step.name for step in report.steps],
        "complete": is_complete(report)}


def _pair_json(pair: StepPair) -> dict[str, Any]:
    figures = {}
    for figure in FIGURES:
        a, b = pair.values(figure)
        difference = None if a is None or b is None else b - a
        figures[figure] = {"a": a, "b": b, "difference": difference, "ratio": _finite(ratio(a, b))}
    sides = {name: None if side is None else _side_json(side)
        for name, side in (("a", pair.a), ("b", pair.b))}
    return {"name": pair.name, **sides, "figures": figures}


def _side_json(side: Side) -> dict[str, Any]:
    busiest = side.busiest
    return {"ranks": side.most_ranks, "busiest_rank": None if busiest is None else busiest[0].rank,
        "busiest_rank_label": None if busiest is None else busiest[0].label,
        "busiest_s": None if busiest is None else busiest[1] / 1e9}


def _file_json(side: FileSide) -> dict[str, Any] | None:
    if not side.files:
        return None
    return {"files": side.files, "calls": side.calls, "bytes_read": side.bytes_read,
        "bytes_written": side.bytes_written, "seconds": side.ns / 1e9}


def _routine_json(one: Routine) -> dict[str, Any]:
    return {"calls": one.calls, "bytes": one.bytes, "seconds": one.ns / 1e9}
