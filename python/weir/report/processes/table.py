# SPDX-License-Identifier: Apache-2.0
"""What the kernel counted of each process beside what weir saw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from weir.report.frame.build import Report, StepReport
from weir.report.frame.declared import Field, Listing, Made
from weir.report.frame.kind import Options, TableKind
from weir.report.frame.table import Table
from weir.report.processes.compute import figures_of, process_order
from weir.report.processes.figures import Figures

SHOWN_BYTES = 500  # less is printed as 0.000 MB


def _rows_of(steps: Sequence[StepReport], masks: Sequence[np.ndarray]) -> Made:
    orders = [process_order(step.data, mask) for step, mask in zip(steps, masks)]
    ends = np.cumsum([0, *map(len, orders)])

    def row(at: int) -> dict[str, Any]:
        nth = int(np.searchsorted(ends, at, side="right")) - 1
        step, index = steps[nth], int(orders[nth][at - ends[nth]])
        one, data, member = figures_of(step).of(index), step.data, step.data.members[index]
        process, line = member.process, data.lines[member.file]
        return {name: getattr(one, name) for name in one.__slots__} | {
            "rank": step.names.ranks[member.number],
            "ppid": process.ppid, "cwd": process.cwd,
            "started_ns": line.timestamp(process.start_ticks),
            "ended_ns": line.timestamp(process.end_ticks) if process.end_ticks else None,
            "end_kind": one.end, "launcher": one.is_launcher, "events": process.events,
            "counted_calls": process.counted_calls, "lost_events": process.lost_events,
            "ns": round(one.seconds * 1e9), "unseen": one.unseen, "incomplete": one.is_incomplete,
        }  # fmt: skip

    return Made(int(ends[-1]), row)


def _every(report: Report) -> Made:
    """All processes, launchers included."""
    return _rows_of(report.steps, [np.ones(len(one.data.members), bool) for one in report.steps])


def _chosen(report: Report) -> Made:
    return _rows_of(report.steps, [step.members for step in report.steps])


LISTING = Listing(
    "processes",
    "one row for each process, launchers included",
    (
        Field("step", "text", "", "name of the step", "Step"),
        Field("node", "text", "", "name of the node", "node"),
        Field("rank", "rank", "",
              "rank of the process, -1: it has none; 0 for all where nothing in the step is "
              "parallel", "<rank", show=lambda one: one.label if one.is_rank else "-"),
        Field("pid", "int32", "", "process id on the node", "pid"),
        Field("ppid", "int32", "", "process id of its parent"),
        Field("cwd", "text", "", "where it began"),
        Field("started_ns", "int", "ns", "since 1970, on the clock that the nodes share",
              key="started_ns"),
        Field("ended_ns", "int?", "ns", "the same; null: it had no orderly end", key="ended_ns"),
        Field("launcher", "bool", "", "mpirun, srun or another launcher"),
        Field("events", "int", "", "records"),
        Field("counted_calls", "int", "", "calls that are in counters alone"),
        Field("lost_events", "int", "", "calls of which nothing was kept"),
        Field("calls", "int", "", "calls of the program, pipes included"),
        Field("ns", "int", "ns", "time in them"),
        Field("kernel_read", "int?", "bytes",
              "read, as the kernel counted it, less what is not the program's own", "kernel",
              "MB read", key="kernel_bytes_read"),
        Field("seen_read", "int", "bytes", "read, as weir saw it, pipes included", "seen",
              "MB read", key="seen_bytes_read"),
        Field("kernel_written", "int?", "bytes", "written, as the kernel counted it", "kernel",
              "MB written", key="kernel_bytes_written"),
        Field("seen_written", "int", "bytes", "written, as weir saw it", "seen", "MB written",
              key="seen_bytes_written"),
        Field("unseen", "int", "bytes",
              "that only the kernel counted, and those of mapped files, libaio and io_uring to or "
              "from storage", "MB", "not seen"),
        Field("incomplete", "bool", "", "more than 1 MiB and 1 % of its bytes were not seen", "<",
              show=lambda is_incomplete: "*" if is_incomplete else ""),
        Field("end_kind", "text", "",
              "exit, _exit, exec, fatal signal, no orderly end, or the signal that killed it "
              "(SIGSEGV)", "end", key="end"),
        Field("command", "text", "", "command line", "command", show=lambda command: command[:100]),
    ),
    _every,
)  # fmt: skip


def _tables(report: Report, options: Options) -> Iterator[Table]:
    every = _chosen(report)
    masks = [_masks(step) for step in report.steps]
    is_listed, is_incomplete = map(np.concatenate, zip((np.zeros(0, bool),) * 2, *masks))
    order = np.flatnonzero(is_listed)
    order = order[np.argsort(~is_incomplete[order], kind="stable")].tolist()
    nodes = {step.data.files[member.file].node for step in report.steps
        for member, is_chosen in zip(step.data.members, step.members.tolist()) if is_chosen}
    moved = Made(len(order), lambda at: every[order[at]])
    remarks = _remarks(moved[: options.limit], len(every) - len(moved))
    without = () if len(nodes) > 1 else ("node",)
    yield LISTING.table("Processes", moved, top=options.limit, without=without, remarks=remarks)


def _masks(step: StepReport) -> tuple[np.ndarray, np.ndarray]:
    """Of the chosen processes in their order: those to be listed, and those that are incomplete.
    """
    found, order = figures_of(step), process_order(step.data, step.members)
    return ~_are_idle(found)[order], found.are_incomplete[order]


def _are_idle(found: Figures) -> np.ndarray:
    """Mask of the processes that ended in order, and of which the table would show nothing but
    zeros."""
    shown = (found.kernel_read, found.kernel_written, found.seen_read, found.seen_written,
        found.unseen)
    is_little = np.logical_and.reduce([one < SHOWN_BYTES for one in shown])
    return is_little & found.is_known & found.are_in_order


def _remarks(listed: list[dict[str, Any]], idle: int) -> Iterator[str]:
    yield (
        "kernel: counted by Linux for calls. seen: recorded by weir. not seen: counted by Linux, "
        "also for mapped files, and not recorded."
    )
    if any(row["incomplete"] for row in listed):
        yield "*: INCOMPLETE, more than 1 MiB and 1 % of the bytes of the process were not seen"
    if idle:
        processes = f"{idle} {'process' if idle == 1 else 'processes'}"
        yield f"{processes} with less than {SHOWN_BYTES} bytes: not listed (--json lists them)"


PROCESSES = TableKind(
    name="processes",
    heading="Processes",
    shows="bytes that the kernel counted beside those that weir saw",
    tables=_tables,
    page="last",
    json=lambda report, options: {
        "processes": LISTING.first(_chosen(report), options.json_limit)
    },
    listings=(LISTING,),
)
