# SPDX-License-Identifier: Apache-2.0
"""Finding uneven-steps: one step has most of the I/O time of the run."""

from __future__ import annotations

from weir.report.findings.finding import Finding, Limit
from weir.report.frame.amounts import seconds, share
from weir.report.frame.build import Report, StepReport

RATIO = Limit(
    meaning="I/O time of the step over the mean of all steps",
    value=1.5,
    reason="chosen: below it the steps share the time about evenly",
)


def find(report: Report) -> str | None:
    """Active time decides, or I/O time where the active time is not known."""
    if len(report.steps) < 2:
        return None

    def cost(step: StepReport) -> float:
        return (step.active_ns if report.active_ns is not None else step.all.ns) / 1e9

    most = max(report.steps, key=cost)
    whole = sum(map(cost, report.steps))
    if not whole or cost(most) * len(report.steps) < RATIO.value * whole:
        return None
    return (
        f"Step {most.name} has {share(cost(most), whole)} of the I/O time of all steps: "
        f"{seconds(cost(most))} of its {seconds(most.wall_ns / 1e9)} wall time."
    )


UNEVEN_STEPS = Finding(
    name="uneven-steps",
    asks="Does one step have much more I/O time than the others?",
    limits=(RATIO,),
    page="guide/4dvar.md",
    find=find,
)
