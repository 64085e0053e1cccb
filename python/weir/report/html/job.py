# SPDX-License-Identifier: Apache-2.0
"""What the page says of the job at its top: who ran what where, when, and how it ended."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone

from weir.report.file_systems.compute import UNKNOWN, file_systems_of
from weir.report.frame.amounts import number
from weir.report.frame.programs import ranks_text
from weir.report.frame.build import Report, StepReport
from weir.analysis.ranks import spans
from weir.report.mpi_io.compute import mpi_files_of
from weir.report.sentences import count
from weir.trace.children import signal_name
from weir.trace.process import MPI_NAMES

NOT_RECORDED = "not recorded"
MOST_NAMED = 3
MPICH = 2  # of MPI_NAMES
_OWN_FILES = {
    "ROMIO": re.compile(r"/romio-hints$"),
    "OMPIO": re.compile(r"_cid-[-\d]+\.sm$|\.locktest\.\d+$"),  # its shared file pointers
}


@dataclass(frozen=True)
class Fact:
    """whole: all of it, where the text is a part."""

    name: str
    text: str
    whole: str = ""

    @property
    def is_known(self) -> bool:
        return self.text != NOT_RECORDED


def job_facts(report: Report) -> list[Fact]:
    """In the order in which they are read; the run itself is the page's heading."""
    return [
        _fact("Job", _each(report, _job_id)),
        _fact("User", _each(report, lambda step: step.data.step.job and step.data.step.job.user)),
        _fact("Command", _each(report, _command)),
        _fact("Steps", [step.name for step in report.steps], of="steps"),
        _ranks(report),
        _fact("MPI", _each(report, _mpi)),
        _fact("File systems", _file_systems(report)),
        Fact("Start and end, UTC", _times(report)),
        _fact("Exit status", [_status(report)]),
    ]


def _each(report: Report, of: Callable[[StepReport], str | None]) -> list[str]:
    """What the steps have, each text once."""
    return list(dict.fromkeys(filter(None, map(of, report.steps))))


def _fact(name: str, texts: list[str], of: str = "") -> Fact:
    """of: what is counted, where there may be many."""
    if not texts:
        return Fact(name, NOT_RECORDED)
    most = MOST_NAMED if of or name != "Command" else 1
    more = len(texts) - most
    text = ", ".join(texts[:most]) + (f" and {more} more" if more > 0 else "")
    counted = f"{number(len(texts))}: " if of and len(texts) > 1 else ""
    return Fact(name, counted + text, "\n".join(texts) if more > 0 else "")


def _job_id(step: StepReport) -> str | None:
    job = step.data.step.job
    if job is None or job.user is None:  # of an earlier version, or without `weir trace`
        return None
    return f"{job.batch_system} {job.job_id}" if job.job_id else "not in a batch job"


def _command(step: StepReport) -> str | None:
    """As it was typed; without `weir trace` that of the rank, or of the process, that is first."""
    job = step.data.step.job
    if job is not None and job.command:
        return shlex.join(job.command)
    first = sorted((m for m in step.data.members if m.process.command and not m.is_launcher),
        key=lambda m: (m.rank < 0, m.rank, m.process.start_realtime_ns))
    return shlex.join(first[0].process.command) if first else None


def _ranks(report: Report) -> Fact:
    """Of the step that has most, with the nodes of all."""
    def of(step: StepReport) -> int:
        return step.rank_count

    name = "Ranks and nodes"
    nodes = sorted({file.node for step in report.steps for file in step.data.files})
    step = max(report.steps, key=of, default=None)
    if step is None or not of(step):
        return Fact(name, NOT_RECORDED)
    on = _fact(name, nodes)
    if not step.data.worlds:
        return Fact(name, f"{ranks_text(report)}, not parallel, on {on.text}", on.whole)
    by_node: dict[int, set[int]] = {}
    for member in step.data.members:
        if member.rank >= 0 and not member.is_launcher:
            by_node.setdefault(member.file, set()).add(member.number)
    each = sorted({len(ranks) for ranks in by_node.values()})
    where = on.text
    if len(nodes) > 1:
        where = f"{count(len(nodes), 'node')}, {spans(tuple(each))} on each: {where}"
    return Fact(name, f"{ranks_text(report)} on {where}", on.whole)


def _mpi(step: StepReport) -> str | None:
    """The library of the ranks, and which implementation of MPI-IO it used."""
    kinds = {m.process.mpi for m in step.data.members if m.rank >= 0 and not m.is_launcher}
    kinds.discard(0)
    if not kinds:
        is_parallel = any(member.process.rank >= 0 for member in step.data.members)
        return None if is_parallel or not step.data.members else "none"
    names = " and ".join(MPI_NAMES[min(kind, len(MPI_NAMES) - 1)] for kind in sorted(kinds))
    return f"{names}; MPI-IO: {_mpi_io(step, kinds)}"


def _mpi_io(step: StepReport, kinds: set[int]) -> str:
    """By the files that each implementation itself opens with a file, or ROMIO's hints in force;
    MPICH has no other than ROMIO."""
    files = mpi_files_of(step)
    if not files:
        return "not used" if step.keeps_names else NOT_RECORDED
    if kinds == {MPICH} or any(key.startswith("romio_") for file in files for key in file.hints):
        return "ROMIO"
    found = {name for file in step.data.files for text in file.texts
        for name, own in _OWN_FILES.items() if own.search(text)}
    return " and ".join(sorted(found)) or NOT_RECORDED


def _file_systems(report: Report) -> list[str]:
    """Those with most I/O first."""
    found = [one.mount for one in file_systems_of(report)]
    return [f"{one.point} ({one.kind})" for one in found if one != UNKNOWN]


def _times(report: Report) -> str:
    began = min((step.started_ns for step in report.steps if step.started_ns), default=0)
    if not began:
        return NOT_RECORDED
    ended = max(step.started_ns + step.wall_ns for step in report.steps)
    first, last = (datetime.fromtimestamp(ns // 10**9, timezone.utc) for ns in (began, ended))
    day = "" if first.date() == last.date() else "%Y-%m-%d "
    return f"{first:%Y-%m-%d %H:%M:%S} to {last.strftime(day + '%H:%M:%S')}"


def _status(report: Report) -> str:
    """Of all steps: 0, or those that failed, with their steps where there are several."""
    jobs = [(step.name, step.data.step.job) for step in report.steps]
    of = {name: job.exit_status for name, job in jobs if job and job.exit_status is not None}
    failed = list(_failed(of, len(report.steps) > 1))
    if failed:
        return ", ".join(failed)
    unknown = len(jobs) - len(of)
    if unknown == len(jobs):
        return NOT_RECORDED
    return "0" + (f" ({count(unknown, 'step')} {NOT_RECORDED})" if unknown else "")


def _failed(statuses: dict[str, int], has_steps: bool) -> Iterator[str]:
    for step, status in statuses.items():
        if status:
            text = str(status) if status > 0 else f"{-status} ({signal_name(-status)})"
            text = text if status > 0 else f"killed by signal {text}"
            yield f"{text} in {step}" if has_steps else text
