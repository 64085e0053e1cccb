# SPDX-License-Identifier: Apache-2.0
"""Passes over all records by native code, begun before their figures are asked for."""

from __future__ import annotations

from functools import partial

from weir.report.forwarding.compute import forwarding_of
from weir.report.frame.build import Report, activity_of, begin_figures
from weir.report.output_cost.compute import output_costs_of
from weir.report.patterns.compute import accesses_of, reading_accesses
from weir.trace.file import remote_reader


def read_beside_accesses(report: Report) -> None:
    """Figures that take long and need no accesses, in the time in which a thread still reads these:
    what comes behind needs them, and would leave other processors without work."""
    output_costs_of(report)
    forwarding_of(report)


def read_ahead(report: Report, *, accesses: bool) -> None:
    """Active time, and how files are accessed, where these are wanted."""
    if any(remote_reader(step.data.files) is not None for step in report.steps):
        return  # a cluster belongs to one thread
    asked = [(activity_of, step, partial(activity_of.__wrapped__, step)) for step in report.steps
        if step.level == "trace" and activity_of.__wrapped__ not in step.figures]
    for step in report.steps:
        step.members  # noqa: B018: made here, as two threads must not
    if accesses and accesses_of.__wrapped__ not in report.figures:
        # one for Python, whose work is the longest
        asked.append((accesses_of, report, reading_accesses(report, spared=1)))
    if asked:
        begin_figures(*asked)
