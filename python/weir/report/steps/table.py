# SPDX-License-Identifier: Apache-2.0
"""The table of steps, in the layout of the reference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from weir.analysis.totals import Totals
from weir.report.frame.build import Report, StepReport
from weir.report.frame.declared import Field, Listing, Made
from weir.report.frame.figures import share, share_text, short, thousands
from weir.report.frame.kind import TableKind
from weir.report.frame.programs import one_of, plural, programs_of
from weir.report.frame.table import Table
from weir.report.processes.compute import is_step_complete
from weir.report.routines.compute import routines_of
from weir.report.routines.table import routines_json


def _billions(count: int) -> str:
    return short(count / 1e9)


_OF_ALL = (  # in the layout of the reference
    Field("calls", "int", "", "calls of the program", "Calls", "All ranks I/O", thousands, None),
    Field("bytes", "int", "bytes", "moved at the lowest level seen", "GB", "All ranks I/O",
          _billions, None),
    Field("ns", "int", "ns", "time in calls, over all ranks", "sec", "All ranks I/O", _billions,
          None),
    Field("files", "int?", "", "files that were opened, read or written; null: level summary",
          "files", "All ranks I/O", key=None),
)  # fmt: skip
_OF_RANK_0 = tuple(
    replace(one, name=f"rank0_{one.name}", kind=one.kind.rstrip("?") + "?", group="Rank 0 I/O",
            meaning=f"the same of rank 0 of each program: {one.name}")
    for one in _OF_ALL
)  # fmt: skip

LISTING = Listing(
    "steps",
    "one row for each step, as in `weir report`",
    (
        Field("step", "text", "", "name of the step", "Step", key="name"),
        Field("level", "text", "", "what was kept: summary, detail, trace"),
        Field("command", "list?", "", "what was started"),
        Field("cwd", "text?", "", "where"),
        Field("started_ns", "int", "ns", "when, since 1970", key="started_ns"),
        Field("wall_ns", "int", "ns", "from start to end", "Wall", show=_billions),
        Field("user", "text?", "", "who started it; null: not recorded"),
        Field("batch_system", "text?", "", "Slurm, PBS, ...; null: in no batch job, or not "
              "recorded"),
        Field("job_id", "text?", "", "of the batch system"),
        Field("exit_status", "int?", "",
              "of the command; negative: killed by that signal; null: not known"),
        Field("ranks", "int", "", "ranks of the parallel programs; 1 when nothing was parallel"),
        Field("processes", "int", "", "processes, launchers left out"),
        Field("nodes", "int", "", "trace files, one for each node"),
        *_OF_RANK_0,
        *_OF_ALL,
        Field("active_ns", "int?", "ns",
              "the time in which at least one rank was in I/O; null: not level trace", "sec",
              "Active", _billions),
        Field("lost_events", "int", "", "calls without a record"),
        Field("complete", "bool", "", "nothing is missing or damaged"),
        Field("rank0", "object", "", "calls, bytes, seconds, files"),
        Field("all", "object", "", "calls, bytes, seconds, files"),
        Field("programs", "object", "",
              "name, ranks (0: processes without one), times: how often so many were started"),
        Field("by_rank", "object", "",
              "rank (-1: a program without one), rank_label, calls, bytes, seconds, files"),
        Field("by_node", "object", "",
              "node, ranks, calls, bytes, seconds; rank_seconds: of its ranks least, median, most"),
        Field("routines", "object", "", "rank0, all: rows, total and below of the table routines"),
        Field(
            "clocks", "object", "",
            "node, offset_ns and drift against the reference node, barriers used (0: the reference "
            "itself, or not aligned), error_ns: the maximum error of the offset",
        ),
    ),
    lambda report: [_row(step) for step in report.steps],
)  # fmt: skip


def _half(one: Totals, of: str = "") -> dict[str, Any]:
    return {of + key: getattr(one, key) for key in ("calls", "bytes", "ns", "files")}


def _rank0(of: Report | StepReport) -> dict[str, Any]:
    """Not known where another rank was chosen."""
    found = _half(of.rank0, "rank0_")
    return found if of.choice.rank in (None, 0) else dict.fromkeys(found)


def mean_rank_ns(report: Report) -> float:
    """I/O time of a rank, on average over the ranks of each step; its calls added up."""
    return sum(step.all.ns / max(1, step.rank_count) for step in report.steps)


def step_table(report: Report) -> Table:
    """Wall; rank 0 and all ranks: calls, GB, seconds, files; active seconds."""
    total = _half(report.all) | _rank0(report)
    total |= {"wall_ns": report.wall_ns, "active_ns": report.active_ns}
    of_ranks = {key: total[key] for key in ("rank0_ns", "active_ns")}
    per_rank = {"ns": mean_rank_ns(report), **of_ranks}
    wall_ns = report.wall_ns if report.keeps_names else None  # waits for pipes are no I/O on files
    shares = {key: share(ns, wall_ns) for key, ns in per_rank.items()}
    printed = {key: "-" if of is None or of > 1 else share_text(of) for key, of in shares.items()}
    lines = (
        {"step": "TOTAL"} | total | {"files": "", "rank0_files": ""},
        {"step": "%WALL"} | printed,
    )
    word = one_of(report)
    is_serial = word == "process" and report.shown_ranks in ([None], [0])
    is_one = is_serial and max((int(step.members.sum()) for step in report.steps), default=0) < 2
    active = "" if report.active_ns is None else f" Active: time with at least one {word} in I/O."
    whose = "time in calls, of several threads added up" if is_one else f"sum over the {plural(word)}"
    remarks = [f"I/O sec: {whose}.{active}", "%WALL: share of the wall time"]
    several = any(len(step.data.worlds) > 1 for step in report.steps)
    if several:
        remarks.append("Ranks 0: rank 0 of each parallel program")
    if len(report.shown_ranks) > 1:
        remarks[1] += "; of all ranks: the mean of a rank"
    if not report.keeps_names:
        remarks[1] += "; -: not known at level summary, which counts waits for pipes and terminals"
    if any(of is not None and of > 1 for of in shares.values()):
        remarks.append("-: calls of several threads or processes at once take more than the wall "
                       "time")
    without = [one.name for one in _OF_RANK_0] if is_serial else []
    made = LISTING.table("Steps", LISTING.rows(report), footer=lines, remarks=remarks,
        without=without)
    of_all = "I/O" if is_one else "I/O of all processes" if is_serial else "All ranks I/O"
    of_rank_0 = "Ranks 0 I/O" if several else "Rank 0 I/O"
    words = {"Rank 0 I/O": of_rank_0, "All ranks I/O": of_all}
    return replace(made, groups=tuple((words.get(text, text), count) for text, count in
        made.groups))


def by_node(step: StepReport) -> list[dict[str, Any]]:
    """Totals of the ranks of each node, and how these differ in time."""
    on: dict[str, list[Totals]] = {}
    place = {one.number: one.file for one in step.data.members if one.number >= 0}
    for rank, one in step.by_rank.items():
        if rank >= 0:
            on.setdefault(step.data.files[place[rank]].node, []).append(one)
    made = []
    for node, every in on.items():
        times = sorted(one.seconds for one in every)
        spread = {"least": times[0], "median": times[len(times) // 2], "most": times[-1]}
        sums = {key: sum(getattr(one, key) for one in every) for key in ("calls", "bytes")}
        seconds = sum(one.ns for one in every) / 1e9
        made.append({"node": node, "ranks": len(every), **sums, "seconds": seconds,
            "rank_seconds": spread})
    return made


def _ranks(step: StepReport) -> Made:
    numbers = list(step.by_rank)

    def row(at: int) -> dict[str, Any]:
        name = step.names.ranks[numbers[at]]
        one = step.by_rank[numbers[at]]
        return {"rank": name.rank, "rank_label": name.label, **totals_json(one)}

    return Made(len(numbers), row)


def totals_json(one: Totals) -> dict[str, Any]:
    return {"calls": one.calls, "bytes": one.bytes, "seconds": one.seconds, "files": one.files}


def _row(step: StepReport) -> dict[str, Any]:
    data, job = step.data, step.data.step.job
    command = None if job is None or job.command is None else list(job.command)
    return {
        "step": step.name, "level": step.level, "command": command, "cwd": data.cwd,
        "started_ns": step.started_ns, "wall_ns": step.wall_ns,
        **{key: None if job is None else getattr(job, key)
            for key in ("user", "batch_system", "job_id", "exit_status")},
        "ranks": step.rank_count, "processes": int(step.members.sum()),
        "nodes": len(data.files), **_rank0(step), **_half(step.all), "active_ns": step.active_ns,
        "lost_events": step.lost_events, "complete": is_step_complete(step),
        "rank0": totals_json(step.rank0), "all": totals_json(step.all),
        "programs": lambda: [{"name": one.name, "ranks": one.ranks, "times": one.times}
            for one in programs_of(step)],
        "by_rank": lambda: _ranks(step),
        "by_node": lambda: by_node(step),
        "routines": lambda: {
            name: routines_json(routines_of(step, rank))
            for name, rank in (("rank0", 0), ("all", None))
        },
        "clocks": [vars(one) for one in data.alignments],
    }  # fmt: skip


STEPS = TableKind(
    name="steps",
    heading="Steps",
    shows="wall time, calls, bytes and I/O seconds of each step",
    tables=lambda report, _: [step_table(report)],
    page="own",
    json=lambda report, _: {"steps": LISTING.json(LISTING.rows(report))},
    is_in_overview=True,
    listings=(LISTING,),
)
