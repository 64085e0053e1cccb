# SPDX-License-Identifier: Apache-2.0
"""The findings of the page: one line each on the first screen, and a section with all that is known
of each, its place on the axis of time and the table that has its figures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weir.advise.advise import Report as Found
from weir.advise.advise import findings_of
from weir.advise.findings.registry import BY_NAME
from weir.advise.frame.finding import Advice
from weir.advise.costs import change_of
from weir.advise.text import expectation, headline, rest_text, worth
from weir.report.frame.build import Report
from weir.report.frame.section import Section, rendered
from weir.report.timeline.page import has_calls, span_of, timeline_of

MOST_LINES = 3  # on the first screen
_MARGIN = 0.05  # of the window, on both sides


@dataclass(frozen=True)
class Place:
    """Where a finding is: seconds on the page's axis of time."""

    from_s: float
    until_s: float


@dataclass(frozen=True)
class Shown:
    """One finding as the page has it. anchor: of its entry in the section; table: the section with
    its figures, empty where the page has none; place: None without single calls."""

    advice: Advice
    anchor: str
    worth: str
    saves: str
    shrinks: str
    page: str
    table: str
    table_title: str
    place: Place | None


def shown_findings(report: Report, sections: dict[str, str]) -> list[Shown]:
    """sections: titles of the page's sections by name."""
    made = []
    for number, one in enumerate(findings_of(report).advices, 1):
        declared = BY_NAME[one.finding]
        table = declared.table if declared.table in sections else ""
        made.append(Shown(one, f"finding-{number}", worth(one), expectation(one), declared.shrinks,
            declared.page, table, sections.get(table, ""), _place(report, one)))
    return made


def findings_section(report: Report, shown: list[Shown]) -> Section | None:
    """None where nothing was found and nothing else costs much."""
    found: Found = findings_of(report)
    if not shown and not found.rest:
        return None
    body = rendered("findings.j2", findings=shown, headline=headline(found), path=report.path,
        rest=[f"{rest_text(found, one)}; would help: {change_of(found, one)}"
            for one in found.rest])
    return Section("findings", "Findings, and what their cures would save", body, brief="Findings")


def _place(report: Report, one: Advice) -> Place | None:
    """From the first to the last call on its files, or the step that it is about."""
    axis = timeline_of(report)
    if axis is None:
        return None
    numbers = _numbers(report, one)
    first, last = axis.length_ns, 0
    for step, segment in zip([step for step in report.steps if has_calls(step)], axis.segments):
        begin = span_of(step).first_ns
        if one.step == step.name:
            return _window(segment.from_ns, segment.from_ns + segment.length_ns, axis.length_ns)
        rows = step.sums.where(np.isin(step.sums.name, numbers))
        if len(rows):
            first = min(first, segment.from_ns + int(rows.first_ns.min()) - begin)
            last = max(last, segment.from_ns + int(rows.last_ns.max()) - begin)
    return _window(first, last, axis.length_ns) if first < last else None


def _numbers(report: Report, one: Advice) -> list[int]:
    """Of the names of its files, those of before they were renamed as well."""
    of = findings_of(report).facts.files
    every = [of[path].totals for path in one.paths if path in of]
    names = {name for file in every if file is not None for name in (file.file, *file.also)}
    return [report.names.number(name) for name in names]


def _window(first_ns: int, last_ns: int, length_ns: int) -> Place:
    margin = int(_MARGIN * (last_ns - first_ns))
    return Place(max(0, first_ns - margin) / 1e9, min(length_ns, last_ns + margin) / 1e9)
