# SPDX-License-Identifier: Apache-2.0
"""The table of steps, in the layout of the reference."""

from __future__ import annotations

from typing import Any

from weir.analysis.totals import Totals
from weir.report.frame.build import Report, StepReport
from weir.report.frame.figures import percent, short, thousands
from weir.report.frame.kind import TableKind
from weir.report.frame.table import Table
from weir.report.processes.compute import is_step_complete
from weir.report.routines.compute import routines_of
from weir.report.routines.table import routines_json


def step_table(report: Report) -> Table:
    """Wall; rank 0 and all ranks: calls, GB, seconds, files; active seconds."""

    def half(one: Totals, files: bool = True) -> tuple[str, ...]:
        count = "-" if one.files is None else str(one.files)
        return thousands(one.calls), short(one.bytes / 1e9), short(one.seconds), count if files else ""

    def rank0(one: Totals, files: bool = True) -> tuple[str, ...]:
        return half(one, files) if report.choice.rank in (None, 0) else ("-", "-", "-", "-" if files else "")

    def active(ns: int | None) -> str:
        return "-" if ns is None else short(ns / 1e9)

    rows = tuple(
        (one.name, short(one.wall_ns / 1e9), *rank0(one.rank0), *half(one.all), active(one.active_ns)) for one in report.steps
    )
    wall = report.wall_ns / 1e9
    total = ("TOTAL", short(wall), *rank0(report.rank0, False), *half(report.all, False), active(report.active_ns))
    shares = [percent(seconds, wall) for seconds in (report.rank0.seconds, report.all.seconds)]
    active_share = "-" if report.active_ns is None else percent(report.active_ns / 1e9, wall)
    if report.choice.rank not in (None, 0):
        shares[0] = "-"
    share = ("%WALL", "", "", "", shares[0], "", "", "", shares[1], "", active_share)
    columns = ("<Step", "Wall", "Calls", "GB", "sec", "files", "Calls", "GB", "sec", "files", "sec")
    groups = (("", 2), ("Rank 0 I/O", 4), ("All ranks I/O", 4), ("Active", 1))
    active_is = " Active: time with at least one rank in I/O." if report.active_ns is not None else ""
    remarks = (f"I/O sec: sum over the ranks.{active_is}", "%WALL: share of the wall time")
    return Table("Steps", columns, rows, groups, (total, share), remarks)


def totals_json(one: Totals) -> dict[str, Any]:
    return {"calls": one.calls, "bytes": one.bytes, "seconds": one.seconds, "files": one.files}


def _step(step: StepReport) -> dict[str, Any]:
    data = step.data
    job = data.step.job
    return {
        "name": step.name,
        "level": step.level,
        "wall_s": step.wall_ns / 1e9,
        "rank0": totals_json(step.rank0),
        "all": totals_json(step.all),
        "active_s": None if step.active_ns is None else step.active_ns / 1e9,
        "lost_events": step.lost_events,
        "complete": is_step_complete(step),
        "ranks": sum(rank >= 0 for rank in step.ranks),
        "nodes": len(data.files),
        "processes": int(step.members.sum()),
        "command": list(job.command) if job is not None and job.command is not None else None,
        "exit_status": job.exit_status if job is not None else None,
        "by_rank": [{"rank": rank, **totals_json(one)} for rank, one in step.by_rank.items()],
        "routines": {"rank0": routines_json(routines_of(step, 0)), "all": routines_json(routines_of(step))},
        "clocks": [
            {
                "node": a.node, "offset_ns": a.offset_ns, "drift": a.drift, "barriers": a.barriers, "error_ns": a.error_ns,
            }
            for a in data.alignments
        ],
    }  # fmt: skip


STEPS = TableKind(
    name="steps",
    heading="Steps",
    shows="wall time, calls, bytes and I/O seconds of each step",
    tables=lambda report, _: [step_table(report)],
    page="own",
    json=lambda report, _: {"steps": [_step(step) for step in report.steps]},
    is_in_overview=True,
)
