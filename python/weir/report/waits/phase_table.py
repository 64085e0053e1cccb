# SPDX-License-Identifier: Apache-2.0
"""Phases as tables and JSON: the OLAM study's time and sync time of each, and what I/O in it costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weir.report.frame.build import Report, StepReport
from weir.report.frame.figures import percent
from weir.report.frame.kind import Options, TableKind
from weir.report.frame.table import Table
from weir.report.waits.phases import PhaseTotals
from weir.report.waits.summary import synchronisation_of
from weir.report.waits.table import costs_json, seconds

MOST_AUTOMATIC = 1000  # in JSON
_SOURCES = {
    "marks": "",
    "rules": ", by rule",
    "barriers": ", between barriers of MPI_COMM_WORLD",
}


def phase_tables(report: Report, top: int | None, *, automatic: bool) -> Iterator[Table]:
    """One for each step that has phases; automatic: also those between barriers."""
    for step in report.steps:
        found = synchronisation_of(step)
        if found.phases and (automatic or found.spans.source != "barriers"):
            yield _table(step, found.phases, top)


def _table(step: StepReport, phases: tuple[PhaseTotals, ...], top: int | None) -> Table:
    longest = set(sorted(range(len(phases)), key=lambda at: -phases[at].wall_ns)[:top])
    kept = [one for at, one in enumerate(phases) if at in longest]
    rows = tuple(
        (
            one.name, str(one.times), str(one.ranks), seconds(one.least_ns), seconds(one.mean_ns), seconds(one.most_ns), seconds(one.sync_ns),
            seconds(one.wall_ns), percent(one.wall_ns, step.wall_ns), seconds(one.io_ns), seconds(one.exposed_ns), seconds(one.critical_ns),
        )
        for one in kept
    )  # fmt: skip
    of = f" ({len(kept)} of {len(phases)}, the longest)" if len(kept) < len(phases) else ""
    columns = ("<Phase", "times", "ranks", "min", "mean", "max", "sync", "wall", "%run", "I/O", "exposed", "critical")
    groups = (("", 3), ("seconds of a rank", 3), ("", 3), ("sec, all ranks", 3))
    return Table(f"Phases of {step.name}{_SOURCES[synchronisation_of(step).spans.source]}{of}", columns, rows, groups)


def _listed(step: StepReport) -> tuple[PhaseTotals, ...]:
    found = synchronisation_of(step)
    if found.spans.source != "barriers" or len(found.phases) <= MOST_AUTOMATIC:
        return found.phases
    longest = set(sorted(range(len(found.phases)), key=lambda at: -found.phases[at].wall_ns)[:MOST_AUTOMATIC])
    return tuple(one for at, one in enumerate(found.phases) if at in longest)


def phase_findings(step: StepReport) -> Iterator[str]:
    """Marks of the program that have no partner."""
    for one in synchronisation_of(step).spans.unpaired:
        if one.begins:
            yield f"phase {one.name} was begun and not ended {times(one.begins)}: it counts until it begins again, or until the rank ends"
        if one.ends:
            yield f"phase {one.name} was ended and not begun {times(one.ends)}"


def rule_findings(report: Report) -> Iterator[str]:
    """Phases of the rules that begin in no step: of files that nobody opens, and barriers that nobody comes to."""
    rules = report.steps[0].phase_rules if report.steps else ()
    if not rules:
        return
    begun = {one.name for step in report.steps for one in synchronisation_of(step).phases}
    for phase in dict.fromkeys(rule.phase for rule in rules if rule.phase not in begun):
        wanted = ", ".join(rule.beginning for rule in rules if rule.phase == phase)
        yield f"phase {phase} begins nowhere: no rank comes to {wanted}"


def times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def phases_json(report: Report) -> list[dict[str, Any]]:
    """All phases of all steps; of those between barriers the MOST_AUTOMATIC longest."""
    return [
        {
            "step": step.name, "source": synchronisation_of(step).spans.source, "phase": one.name, "times": one.times, "ranks": one.ranks,
            "min_s": one.least_ns / 1e9, "mean_s": one.mean_ns / 1e9, "max_s": one.most_ns / 1e9, "sync_s": one.sync_ns / 1e9,
            "wall_s": one.wall_ns / 1e9, "io_s": one.io_ns / 1e9, **costs_json(one),
        }
        for step in report.steps
        for one in _listed(step)
    ]  # fmt: skip


def _tables(report: Report, options: Options) -> Iterator[Table]:
    """Those between barriers only when they are asked for: a run may have thousands."""
    return phase_tables(report, options.limit, automatic=options.names(PHASES))


PHASES = TableKind(
    name="phases",
    heading="Phases",
    shows="time, synchronisation and I/O of each phase",
    tables=_tables,
    why_empty="there are no marks in the program, no rules that fit (--phases) and no barriers, or it was not recorded at level trace",
    page="early",
    json=lambda report, _: {"phases": phases_json(report)},
    has_rows=lambda report: any(synchronisation_of(step).phases for step in report.steps),
)
