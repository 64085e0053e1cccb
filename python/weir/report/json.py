# SPDX-License-Identifier: Apache-2.0
"""The report as JSON: a stable interface, keys are only ever added (docs/reference/tables.md). Counts and bytes are exact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weir.analysis.files import FileTotals, chosen
from weir.analysis.layers import LayeredFile
from weir.analysis.layers import Requests as LayerRequests
from weir.analysis.routines import RoutineTable
from weir.analysis.totals import Totals
from weir.report.flow import flow_json
from weir.report.mpi_io import mpi_io_json, variable_json
from weir.report.notes import notes, unseen_statement
from weir.report.output import output_json
from weir.report.phases import phases_json
from weir.report.waits import waits_json

if TYPE_CHECKING:
    from weir.report.build import Report, StepReport


def report_json(
    report: Report, *, by: str = "msec", top: int | None = None, threshold_ns: int = 0, pattern: str | None = None
) -> dict[str, Any]:
    """All tables but trace lines and details; `files` are chosen as in weir.analysis.files.chosen."""
    not_files, launchers = [step.left_out()[0] for step in report.steps], [step.left_out()[1] for step in report.steps]
    whole = report.all
    return {
        "format": 1,
        "unseen": _unseen(report),
        "run": report.path,
        "steps": [_step(step) for step in report.steps],
        "total": {
            "wall_s": report.wall_ns / 1e9,
            "task0": _totals(report.task0),
            "all": _totals(whole),
            "active_s": _seconds(report.active_ns),
            **_totals(whole),
        },
        "files": [_file(one, report) for one in chosen(report.files, by=by, top=top, threshold_ns=threshold_ns, pattern=pattern)],
        "lost_events": report.lost_events,
        "complete": report.is_complete,
        "notes": notes(report),
        "problems": [
            {"file": p.path, "byte": p.offset, "reason": p.reason, "count": p.count} for p in report.problems
        ],
        "not_files": {"calls": sum(t.calls for t in not_files), "bytes": sum(t.bytes for t in not_files)},
        "launchers": {"calls": sum(t.calls for t in launchers), "bytes": sum(t.bytes for t in launchers)},
        "requests": _requests(report),
        "fortran_units": [
            {
                "units": list(u.units), "file": u.file, "reads": u.reads, "writes": u.writes, "others": u.others,
                "payload_bytes": u.payload_bytes, "seconds": u.ns / 1e9, "system_requests": u.system_requests,
                "system_bytes": u.system_bytes,
            }
            for u in report.units
        ],
        "layers": [_layered(one) for one in report.layers],
        "processes": [_process(one) for one in report.processes],
        "output": [output_json(one) for one in report.output],
        "waits": waits_json(report),
        "phases": phases_json(report),
        "mpi_io": [mpi_io_json(one) for one in report.mpi_files],
        "variables": [variable_json(one) for one in report.variables],
        "filesystems": [
            {
                "mount": fs.mount.point, "kind": fs.mount.kind, "source": fs.mount.source, "nodes": fs.nodes, "files": fs.files,
                "calls": fs.calls, "bytes_read": fs.bytes_read, "bytes_written": fs.bytes_written, "seconds": fs.ns / 1e9,
            }
            for fs in report.file_systems
        ],
        "flow": flow_json(report, pattern),
    }  # fmt: skip


def _unseen(report: Report) -> dict[str, Any]:
    """What the kernel counted and nobody saw; statement: the first line of the report where it is not the whole truth."""
    steps = [(step.name, step.unseen) for step in report.steps]
    return {
        "statement": unseen_statement(report),
        "bytes": sum(one.bytes for _, one in steps),
        "kernel_bytes": sum(one.counted for _, one in steps),
        "processes": [
            {"step": name, "pid": p.pid, "command": p.command, "bytes": p.unseen, "way": p.way} for name, one in steps for p in one.processes
        ],
        "programs": [
            {"step": name, "pid": p.pid, "rank": p.rank, "program": p.program, "reason": p.reason, "group_bytes": group.bytes, "matters": group.matters}
            for name, one in steps for group in one.groups for p in group.programs
        ],
    }  # fmt: skip


def _layered(one: LayeredFile) -> dict[str, Any]:
    def requests(of: LayerRequests | None) -> dict[str, Any] | None:
        if of is None:
            return None
        return {
            "requests": of.count, "reads": of.reads, "writes": of.writes, "bytes": of.bytes,
            "read_bytes": of.read_bytes, "written_bytes": of.written_bytes, "sizes": of.sizes, "seconds": of.ns / 1e9,
        }  # fmt: skip

    return {
        "file": one.file,
        "logical": requests(one.logical),
        "system": requests(one.system),
        "iowait_s": one.iowait_ns / 1e9,
        "events": {str(position): requests(seen) for position, seen in sorted(one.events.items())},
        "left": [{"layer": left.layer, "reason": left.reason, "times": left.times} for left in one.left],
        "statistics": [{"layer": f.layer, "name": f.name, "value": f.value, "unit": f.unit} for f in one.figures],
        "deferred_errors": one.deferred_errors,
        "lost_bytes": one.lost_bytes,
    }


def _seconds(ns: int | None) -> float | None:
    return None if ns is None else ns / 1e9


def _totals(one: Totals) -> dict[str, Any]:
    return {"calls": one.calls, "bytes": one.bytes, "seconds": one.seconds, "files": one.files}


def _step(step: StepReport) -> dict[str, Any]:
    data = step.data
    job = data.step.job
    return {
        "name": step.name,
        "level": step.level,
        "wall_s": step.wall_ns / 1e9,
        "task0": _totals(step.task0),
        "all": _totals(step.all),
        "active_s": _seconds(step.active_ns),
        "lost_events": step.lost_events,
        "complete": step.is_complete,
        "ranks": sum(rank >= 0 for rank in step.ranks),
        "nodes": len(data.files),
        "processes": int(step.members.sum()),
        "command": list(job.command) if job is not None and job.command is not None else None,
        "exit_status": job.exit_status if job is not None else None,
        "tasks": [{"rank": rank, **_totals(one)} for rank, one in step.by_rank.items()],
        "routines": {"task0": _routines(step.routines(0)), "all": _routines(step.routines())},
        "clocks": [
            {
                "node": a.node, "offset_ns": a.offset_ns, "drift": a.drift, "barriers": a.barriers, "error_ns": a.error_ns,
            }
            for a in data.alignments
        ],
    }  # fmt: skip


def _routines(table: RoutineTable) -> dict[str, Any]:
    def listed(rows: Sequence) -> list[dict[str, Any]]:
        return [{"routine": r.routine, "calls": r.calls, "bytes": r.bytes, "seconds": r.ns / 1e9} for r in rows]

    return {"rows": listed(table.rows), "total": listed([table.total])[0], "below": listed(table.below)}


def _file(one: FileTotals, report: Report) -> dict[str, Any]:
    mount = report.mount_of(one.file)
    return {
        "file": one.file,
        "also": list(one.also),
        "calls": one.calls,
        "bytes_read": one.bytes_read,
        "bytes_written": one.bytes_written,
        "seconds": one.ns / 1e9,
        "mount": mount.point,
        "file_system": mount.kind,
        "ops": {
            op.op: {"calls": op.calls, "bytes": op.bytes, "seconds": op.ns / 1e9, "below": op.below} for op in one.ops
        },
    }


def _requests(report: Report) -> dict[str, Any]:
    found = report.requests
    return {
        "under_4k": {"calls": found.small_app, "of": found.of_app, "share": found.small_share},
        "under_4k_below": {"calls": found.small_below, "of": found.of_below},
        "sizes": [
            {
                "least_bytes": b.least_bytes, "most_bytes": b.most_bytes, "reads": b.reads, "writes": b.writes,
                "below_reads": b.below_reads, "below_writes": b.below_writes,
            }
            for b in found.sizes
        ],
        "durations": [
            {"from_ns": b.from_ns, "to_ns": b.to_ns, "reads": b.reads, "writes": b.writes} for b in found.durations
        ],
    }  # fmt: skip


def _process(one: Any) -> dict[str, Any]:
    return {
        "step": one.step, "node": one.node, "pid": one.pid, "rank": one.rank, "command": one.command, "end": one.end,
        "calls": one.calls, "seconds": one.seconds, "kernel_bytes_read": one.kernel_read,
        "kernel_bytes_written": one.kernel_written, "seen_bytes_read": one.seen_read,
        "seen_bytes_written": one.seen_written, "blind": one.is_blind, "launcher": one.is_launcher,
    }  # fmt: skip
