# SPDX-License-Identifier: Apache-2.0
"""Phases as tables and JSON: the OLAM study's time and sync time of each, and what I/O in it costs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from weir.report.frame.build import Report, StepReport
from weir.report.frame.declared import Field, Listing
from weir.report.frame.figures import share
from weir.report.frame.kind import Options, TableKind
from weir.report.frame.table import Table
from weir.report.waits.summary import synchronisation_of
from weir.report.waits.table import CRITICAL, PATH, STEP, WAITED

MOST_AUTOMATIC = 1000  # in JSON
_SOURCES = {
    "marks": "",
    "rules": ", by rule",
    "barriers": ", between barriers of MPI_COMM_WORLD",
}
_OF_RANK = "seconds of a rank"

LISTING = Listing(
    "phases",
    "phases of each step, marked by the program or between barriers, as in `weir report --tables "
    "phases`",
    (
        replace(STEP, heading=""),
        Field("phase", "text", "", "its name", "Phase"),
        Field("times", "int", "", "how often a rank was in it, at most", "times"),
        Field("ranks", "int", "", "how many ranks were in it", "ranks"),
        Field("least_ns", "int", "ns",
              "of the rank that was in it for the shortest time, all times together", "min",
              _OF_RANK, key="min_s"),
        Field("mean_ns", "int", "ns", "of all ranks", "mean", _OF_RANK),
        Field("most_ns", "int", "ns", "of the rank that was in it for the longest time", "max",
              _OF_RANK, key="max_s"),
        Field("sync_ns", "int", "ns", "last end less first end", "sync"),
        Field("wall_ns", "int", "ns", "last end less first begin", "wall"),
        Field("share_of_step", "real?", "1", "wall_ns, of that of the step", "%run"),
        Field("io_ns", "int", "ns", "in I/O, over all ranks", "I/O", "s, all ranks"),
        WAITED,
        replace(PATH, heading="on path", group="s, all ranks"),
        replace(CRITICAL, heading="critical", group="s, all ranks"),
        Field("source", "text", "", "marks, rules or barriers"),
    ),
    lambda report: [row for step in report.steps for row in _rows(step)],
)  # fmt: skip


def _rows(step: StepReport) -> list[dict[str, Any]]:
    found = synchronisation_of(step)
    of_step = {"step": step.name, "source": found.spans.source}
    return [
        vars(one) | of_step | {"phase": one.name, "share_of_step": share(one.wall_ns, step.wall_ns)}
        for one in found.phases
    ]


def _longest(rows: list[dict[str, Any]], most: int | None) -> list[dict[str, Any]]:
    """In their order."""
    kept = set(sorted(range(len(rows)), key=lambda at: -rows[at]["wall_ns"])[:most])
    return [row for at, row in enumerate(rows) if at in kept]


def _tables(report: Report, options: Options) -> Iterator[Table]:
    """One for each step; phases between barriers only when asked for: a run may have thousands."""
    for step in report.steps:
        rows, source = _rows(step), synchronisation_of(step).spans.source
        if rows and (options.names(PHASES) or source != "barriers"):
            kept = _longest(rows, options.limit)
            of = f" ({len(kept)} of {len(rows)}, the longest)" if len(kept) < len(rows) else ""
            yield LISTING.table(f"Phases of {step.name}{_SOURCES[source]}{of}", kept)


def _json(report: Report) -> list[dict[str, Any]]:
    """All phases of all steps; of those between barriers the MOST_AUTOMATIC longest."""
    kept = []
    for step in report.steps:
        is_automatic = synchronisation_of(step).spans.source == "barriers"
        kept += _longest(_rows(step), MOST_AUTOMATIC if is_automatic else None)
    return LISTING.json(kept)


def phase_findings(step: StepReport) -> Iterator[str]:
    """Marks of the program that have no partner."""
    for one in synchronisation_of(step).spans.unpaired:
        if one.begins:
            yield (
                f"phase {one.name} was begun and not ended {times(one.begins)}: it counts until it "
                f"begins again, or until the rank ends"
            )
        if one.ends:
            yield f"phase {one.name} was ended and not begun {times(one.ends)}"


def rule_findings(report: Report) -> Iterator[str]:
    """Phases of the rules that begin in no step: of files that nobody opens, and barriers that
    nobody comes to."""
    rules = report.steps[0].phase_rules if report.steps else ()
    if not rules:
        return
    begun = {one.name for step in report.steps for one in synchronisation_of(step).phases}
    for phase in dict.fromkeys(rule.phase for rule in rules if rule.phase not in begun):
        wanted = ", ".join(rule.beginning for rule in rules if rule.phase == phase)
        yield f"phase {phase} begins nowhere: no rank comes to {wanted}"


def times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


PHASES = TableKind(
    name="phases",
    heading="Phases",
    shows="time, synchronisation and I/O of each phase",
    tables=_tables,
    why_empty="there are no marks in the program, no rules that fit (--phases) and no barriers, or "
              "it was not recorded at level trace",
    page="early",
    json=lambda report, _: {"phases": _json(report)},
    has_rows=lambda report: any(synchronisation_of(step).phases for step in report.steps),
    listings=(LISTING,),
)
