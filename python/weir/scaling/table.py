# SPDX-License-Identifier: Apache-2.0
"""Speed-up over several runs, as tables and JSON."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TextIO

from weir._errors import UsageError
from weir.analysis.exclusion import Exclusion
from weir.report.frame.build import Report, build
from weir.report.frame.figures import percent, seconds
from weir.report.frame.table import Table
from weir.report.notes import notes
from weir.report.processes.compute import is_complete
from weir.report.render import write_parts
from weir.report.waits.phase_rules import PhaseRule
from weir.report.waits.summary import synchronisation_of
from weir.report.wall.critical import critical_by_step
from weir.scaling.compute import STOP_GAIN, Crowding, Curve, Loss, RunTimes, Scaling, scaling

REST = "(rest)"


def read_scaling(
    paths: Sequence[str], *, step: str | None = None, phase_rules: tuple[PhaseRule, ...] = (),
    stop_gain: float = STOP_GAIN, exclusion: Exclusion | None = None,
) -> Scaling:
    """Of several runs, or of one step of each. Raises UsageError when they cannot be compared,
    RunNotFound."""
    reports = (
        build(path, step=step, phase_rules=phase_rules, exclusion=exclusion) for path in paths
    )
    runs = [run_times(report, path) for report, path in zip(reports, paths)]
    try:
        return scaling(runs, stop_gain)
    except ValueError as error:
        counts = ", ".join(f"{run.name}: {run.ranks} on {run.nodes}" for run in runs)
        raise UsageError(f"{error}; ranks and nodes are {counts}") from error


def run_times(report: Report, name: str) -> RunTimes:
    """Parts are the phases that marks or rules set; without any the steps; of one step without
    phases, critical I/O time and all the rest."""
    ranks = max((step.rank_count for step in report.steps), default=0)
    nodes = max((len({m.file for m in step.data.members if m.rank >= 0}) for step in report.steps),
        default=0)
    if not ranks or not report.wall_ns:
        raise UsageError(
            f"{name}: no ranks or no time in it; weir trace records runs that can be compared")
    delays = critical_by_step(report)
    critical = None if None in delays else sum(one for one in delays if one is not None)
    parts = _phases(report)
    if not parts and len(report.steps) > 1:
        parts = {step.name: step.wall_ns for step in report.steps}
    elif not parts and critical is not None:
        parts = {"critical I/O": critical}
    parts[REST] = max(0, report.wall_ns - sum(parts.values()))
    if not parts[REST]:
        del parts[REST]
    title = os.path.basename(os.path.abspath(name)) or name
    return RunTimes(title, ranks, nodes, report.wall_ns, parts, critical, is_complete(report), ()
        if _is_sound(report) else tuple(notes(report)))


def _is_sound(report: Report) -> bool:
    """Whether the figures are those of a run that was recorded whole and came to its end."""
    jobs = [step.data.step.job for step in report.steps]
    return is_complete(report) and not any(job is not None
        and (job.exit_status or job.ended_realtime_ns is None) for job in jobs)


def _phases(report: Report) -> dict[str, int]:
    found: dict[str, int] = {}
    for step in report.steps:
        if synchronisation_of(step).spans.source != "barriers":
            for one in synchronisation_of(step).phases:
                found[one.name] = found.get(one.name, 0) + one.wall_ns
    return found


def render_scaling(found: Scaling, stream: TextIO) -> None:
    """Print to a file or pipe as plain text, to a terminal with Rich."""
    write_parts([f"{run.name}: {sentence}" for run in found.runs for sentence in run.notes],
        scaling_tables(found), stream)


def scaling_tables(found: Scaling) -> Iterator[Table]:
    """The curves; then the parts of all runs in s and %; then what a node's neighbours cost."""
    for curve in found.curves:
        yield _curve_table(curve, found)
    if found.parts:
        yield from _part_tables(found)
    for one in found.crowding:
        yield _crowding_table(one)


def curve_tables(found: Mapping[str, Scaling]) -> Iterator[Table]:
    """The curves of several programs, by title."""
    for title, one in found.items():
        for curve in one.curves:
            table = _curve_table(curve, one)
            yield replace(table, title=f"{title}: {table.title}")


def _curve_table(curve: Curve, found: Scaling) -> Table:
    rows = tuple(
        (
            one.run.name, str(one.run.ranks), str(one.run.nodes), seconds(one.run.wall_ns),
            f"{one.speedup:.2f}",
            f"{one.run.ranks / found.reference.ranks:.2f}", percent(one.efficiency, 1), "-"
            if one.run.critical_ns is None else seconds(one.run.critical_ns),
        )
        for one in curve.points
    )  # fmt: skip
    columns = ("<Run", "ranks", "nodes", "wall s", "speed-up", "ideal", "efficiency",
        "critical I/O s")
    title = "Speed-up" + (f", {curve.placement}" if curve.placement else "")
    return Table(title, columns, rows, remarks=tuple(stop_sentences(curve)))


def stop_sentences(curve: Curve) -> Iterator[str]:
    """Where a run stops scaling, and what stops it."""
    stop = curve.stop
    if stop is None:
        if len(curve.points) > 1:
            yield "it does not stop scaling"
        return
    after = (
        f"{stop.after.ranks} ranks gain {percent(stop.gain, 1)} of what they could"
        if stop.gain > 0
        else f"{stop.after.ranks} ranks are slower"
    )
    yield (
        f"it stops scaling at {stop.before.ranks} {'rank' if stop.before.ranks == 1 else 'ranks'}: "
        f"{after}"
    )
    worst = [loss for loss in stop.losses if loss.lost_ns > 0][:1]
    lost = sum(loss.lost_ns for loss in stop.losses if loss.lost_ns > 0)
    for loss in worst:
        part = "time outside the other parts" if loss.part == REST else loss.part
        yield (
            f"{part} stops it: {seconds(loss.before_ns)} s became {seconds(loss.after_ns)} s, "
            f"{percent(loss.lost_ns, lost)} of all that was lost"
        )


def _part_tables(found: Scaling) -> Iterator[Table]:
    runs = {id(point.run): point.run for curve in found.curves for point in curve.points}.values()
    columns = ("<Part", *(f"{run.ranks} on {run.nodes}" for run in runs))
    rows = tuple((part, *(seconds(run.parts_ns[part]) for run in runs)) for part in found.parts)
    yield Table("Wall seconds by part, ranks on nodes", columns, rows)
    shares = tuple((part, *(percent(run.parts_ns[part], run.wall_ns) for run in runs))
        for part in found.parts)
    yield Table("Share of the wall time by part, ranks on nodes", columns, shares)


def _crowding_table(one: Crowding) -> Table:
    def cells(loss: Loss) -> tuple[str, ...]:
        return loss.part, seconds(loss.before_ns), seconds(
            loss.after_ns), f"{loss.lost_ns / 1e9:+.3f}"

    columns = ("<Part", f"on {one.apart.nodes}", f"on {one.together.nodes}", "difference")
    wall = ("TOTAL", seconds(one.apart.wall_ns), seconds(one.together.wall_ns),
        f"{(one.together.wall_ns - one.apart.wall_ns) / 1e9:+.3f}")
    title = (
        f"{one.apart.ranks} ranks on {one.apart.nodes} nodes and on {one.together.nodes}, wall "
        f"seconds"
    )
    return Table(title, columns, tuple(map(cells, one.losses)), footer=(wall,))


def scaling_json(found: Scaling) -> dict[str, Any]:
    """The same figures."""

    def run(one: RunTimes) -> dict[str, Any]:
        return {
            "run": one.name, "ranks": one.ranks, "nodes": one.nodes, "wall_s": one.wall_ns / 1e9,
            "complete": one.is_complete, "notes": list(one.notes),
            "critical_s": None if one.critical_ns is None else one.critical_ns / 1e9,
            "parts_s": {part: ns / 1e9 for part, ns in one.parts_ns.items()},
        }  # fmt: skip

    def losses(of: tuple[Loss, ...]) -> list[dict[str, Any]]:
        return [
            {"part": one.part, "before_s": one.before_ns / 1e9, "after_s": one.after_ns / 1e9,
                "lost_s": one.lost_ns / 1e9} for one in of
        ]

    return {
        "format": 1,
        "complete": found.is_complete,
        "reference": run(found.reference),
        "parts": list(found.parts),
        "curves": [
            {
                "placement": curve.placement,
                "points": [{**run(one.run), "speedup": one.speedup, "efficiency": one.efficiency}
                    for one in curve.points],
                "stop": curve.stop
                and {
                    "at_ranks": curve.stop.before.ranks, "next_ranks": curve.stop.after.ranks,
                    "gain": curve.stop.gain,
                    "losses": losses(curve.stop.losses),
                },
            }
            for curve in found.curves
        ],
        "crowding": [
            {"ranks": one.apart.ranks, "apart": run(one.apart), "together": run(one.together),
                "losses": losses(one.losses)} for one in found.crowding
        ],
    }  # fmt: skip
