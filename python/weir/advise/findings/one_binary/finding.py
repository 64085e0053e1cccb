# SPDX-License-Identifier: Apache-2.0
"""Finding one-binary: a job starts one parallel program after the other, as a 4D-Var does for each
trajectory and minimisation, and each start costs time in which nothing is computed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weir.advise.frame.facts import Facts
from weir.advise.frame.finding import STARTS, Advice, Finding, Limit
from weir.advise.frame.saving import NOTHING, Range, Saving
from weir.report.frame.amounts import counted, number, seconds
from weir.report.frame.build import StepReport
from weir.trace.ops import op_named

STEPS = Limit("steps that start a parallel program", 3, "steps",
    "chosen: of fewer, one program for all saves one start at most")
LEAST = Limit("time of all starts but one, over the wall time of the run", 0.05, "share",
    "chosen: below it a common program is not worth its making")
_SURE = 0.5  # of the time of a start: a common program reads some of its settings anew


@dataclass(frozen=True)
class Start:
    """ranks: of the program. before_s: from the start of the step to the last rank in MPI_Init;
    after_s: from the first one in MPI_Finalize to the end of the step."""

    ranks: int
    before_s: float
    after_s: float


def _start(step: StepReport) -> Start | None:
    def rows_of(name: str):  # type: ignore[no-untyped-def]
        value = op_named(name).value
        return step.seen_where(lambda some: some.op == value)

    begun = rows_of("MPI_Init")
    if not len(begun) or step.rank_count < 2:
        return None
    before = int((begun.first_ns + begun.ns).max()) - step.started_ns
    ended = rows_of("MPI_Finalize")
    after = step.started_ns + step.wall_ns - int(ended.first_ns.min()) if len(ended) else 0
    return Start(step.rank_count, max(0, before) / 1e9, max(0, after) / 1e9)


def find(facts: Facts) -> Iterator[Advice]:
    starts = [one for step in facts.report.steps if (one := _start(step)) is not None]
    if len(starts) < STEPS.value:
        return
    whole = sum(one.before_s + one.after_s for one in starts)
    spared = whole - max(one.before_s + one.after_s for one in starts)
    if spared < LEAST.value * facts.wall_s:
        return
    yield Advice(
        "one-binary", counted(len(starts), "step"), (),
        f"{number(len(starts))} parallel programs are started one after the other: "
        f"{seconds(sum(one.before_s for one in starts))} until all ranks are in MPI_Init, "
        f"{seconds(sum(one.after_s for one in starts))} after the first MPI_Finalize.",
        Saving(NOTHING, None, Range(_SURE * spared, spared)),
        "Let one program do all steps, which then may also hand over in memory what files carry "
        "from step to step.",
    )  # fmt: skip


ONE_BINARY = Finding(
    name="one-binary",
    asks="Does a job start one parallel program after the other where one would do?",
    shrinks=STARTS,
    limits=(STEPS, LEAST),
    page="guide/4dvar.md",
    table="steps",
    cure="",
    find=find,
)
