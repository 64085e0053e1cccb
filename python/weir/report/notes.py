# SPDX-License-Identifier: Apache-2.0
"""What a reader of the tables must know first: losses, damage, failures of weir, omissions."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence

from weir.analysis.totals import Totals
from weir.report.failures.table import failure_statement
from weir.report.frame.amounts import counted, number
from weir.report.frame.build import Report, StepReport
from weir.report.frame.excluded import excluded_of
from weir.report.frame.figures import size
from weir.report.frame.programs import plural
from weir.report.layers.compute import layers_of
from weir.report.layers.table import bypass_statement
from weir.report.mpi_io.compute import mpi_files_of
from weir.report.mpi_io.table import mpi_io_findings
from weir.report.output.compute import output_of
from weir.report.output.table import output_findings
from weir.report.processes.compute import background_of, is_complete, running_of, unseen_of
from weir.report.unseen import (
    MOST_NAMES, damage_that_hides, ending, notes_of_untraced, unseen_statement, who_is
)  # fmt: skip
from weir.report.waits.phase_table import phase_findings, rule_findings
from weir.report.waits.last_files import waits_of
from weir.report.waits.summary import StepWaits
from weir.report.waits.table import wait_findings
from weir.trace.children import signal_name
from weir.trace.process import LEVELS, REFUSED_BY_BUDGET, REFUSED_BY_FILTER, Process

LEFT_OUT = "left out: "  # begins the notes on what the figures do not count by choice
SHOWN_BY = " (--all shows them)"  # ends them
MOST_PROBLEMS = 10
MOST_WORDS = 4
LATER_NS = 50_000_000
UNSURE_NS = 1_000_000
_FIGURES = ("calls", "bytes", "ns")


def notes(report: Report) -> list[str]:
    """Sentences, gravest first; empty when there is nothing to say."""
    incomplete = (
        "INCOMPLETE: the figures below do not show all I/O of the run; "
        "the next notes give the reasons"
    )
    found = [] if is_complete(report) else [unseen_statement(report) or incomplete]
    named = damage_that_hides(report)[:1]  # in the first note already
    problems = [problem for problem in report.problems if problem not in named]
    found += [f"damaged: {problem}" for problem in problems[:MOST_PROBLEMS]]
    if len(problems) > MOST_PROBLEMS:
        found.append(f"damaged: {len(problems) - MOST_PROBLEMS} more places (--json lists all)")
    found += [
        f"LOST BYTES: {one.lost_bytes} bytes that the program's writes had handed over did not "
        f"reach {one.file} ({one.deferred_errors} writes failed later)"
        for one in layers_of(report)
        if one.deferred_errors
    ]
    found += filter(None, (failure_statement(report), bypass_statement(report)))
    for step, waits in zip(report.steps, waits_of(report)):
        found += [f"step {step.name}: {sentence}" for sentence in _of_step(step, waits)]
    found += rule_findings(report)
    if not report.choice.everything and report.steps:
        not_files, launchers, segments = zip(*(step.left_out() for step in report.steps))
        files = sum(part.files or 0 for part in segments)
        found += _excluded(report)
        found += _left_out("pipes, sockets, devices, /proc and /sys", not_files)
        found += _left_out(f"{_files(files, 'shared-memory ')} of MPI libraries", segments)
        found += _left_out("launchers (mpirun, srun, ...)", launchers)
    return found


def _of_step(step: StepReport, waits: StepWaits | None) -> list[str]:
    found = []
    processes = [member.process for member in step.data.members]
    if not step.data.files:
        found.append(
            "no trace file: nothing was recorded (was the program started, and linked dynamically?)"
        )
    if step.level == "summary":
        found.append(
            "level summary does not record which files the calls are on: the figures include pipes "
            "and terminals"
        )
    found += _of_losses(step)
    stepped = sum(
        0 < p.level_now < step.data.files[m.file].header.level and not p.changed_user
        for m, p in zip(step.data.members, processes)
    )
    if stepped:
        least = min(p.level_now for p in processes if p.whole and not p.changed_user)
        found.append(
            f"{number(stepped)} of {number(len(processes))} processes recorded less from some time "
            f"on, at level {LEVELS[least % 4]}: the trace came near its budget (WEIR_BUDGET sets a "
            f"larger one)"
        )
    found += notes_of_killed(step)
    found += notes_of_untraced(step)
    found += _of_clocks(step)
    job = step.data.step.job
    if job is not None and job.exit_status:
        found.append(f"the command {ending(job.exit_status)}")
    if is_launch_killed(step):
        found.append(
            "`weir trace` was killed before it saw the command end: the end of the program is not "
            "known; Wall is from the start of the command to the last record or sign of life of a "
            "process"
        )
    elif job is None or job.ended_realtime_ns is None:
        found.append(
            "no `weir trace` saw the command end (LD_PRELOAD alone, or `weir trace` was killed): "
            "Wall is from the first to the last record or sign of life of a process"
        )
    found += _of_later_work(step)
    if output_of(step) is not None:
        found += output_findings(output_of(step))
    found += wait_findings(step, waits)
    found += phase_findings(step)
    for file in mpi_files_of(step):
        found += mpi_io_findings(file, step.data.cwd)
    return found


def is_launch_killed(step: StepReport) -> bool:
    """Whether `weir trace` began the command and did not live to its end."""
    job = step.data.step.job
    begun = job is not None and job.command is not None and job.ended_realtime_ns is None
    return begun and not running_of(step)


def notes_of_killed(step: StepReport) -> list[str]:
    """Processes that did not exit normally, by name; those that are known to be killed first."""
    data = step.data
    replaced = unseen_of(step).replaced
    found = [
        (index not in data.signals, index)
        for index, one in enumerate(member.process for member in data.members)
        if one.whole and index not in replaced and index not in background_of(step)
        and (index in data.signals or not one.ended_in_order)
    ]  # fmt: skip
    if not found:
        return []
    listed = [_killed(step, index) for _, index in sorted(found)[:MOST_NAMES]]
    if len(found) > MOST_NAMES:
        listed.append(f"{len(found) - MOST_NAMES} more")
    takes_launchers = any(data.members[index].is_launcher for _, index in found)
    whole = len({(one.file, one.process.pid) for one in data.members
        if takes_launchers or not one.is_launcher})
    return [
        f"{number(len(found))} of {number(whole)} {plural('process', whole)} did not exit "
        f"normally: {'; '.join(listed)}"
    ]


def _killed(step: StepReport, index: int) -> str:
    """One process and its signal. The program is its last, as the line of its command may be that
    of the shell from which it was forked."""
    member, signal = step.data.members[index], step.data.signals.get(index)
    process = member.process
    how = f"killed by {signal_name(signal)}" if signal else "killed, crashed, or still running"
    if index in running_of(step):
        how = "still running"
    job = step.data.step.job
    if not signal and job is not None and job.exit_status is not None and len(
            step.data.members) == 1:
        how = f"it {ending(job.exit_status)}, by a system call that weir did not see"
    who = who_is(step, process.pid, member.rank if process.rank >= 0 else -1, member.file)
    return f"{process.command_line[:60]} ({who}: {how})"


def _of_losses(step: StepReport) -> list[str]:
    """Calls without a record, and what else the trace had no room for, with the cause."""
    processes = [member.process for member in step.data.members]
    found = []
    losers = [
        one for member, one in zip(step.data.members, processes)
        if step.data.lost_events_of(member) or one.failures
    ]  # fmt: skip
    named = [one for one in losers if one.changed_user]
    who = "; ".join(f"{one.command_line[:60]} (pid {one.pid})" for one in named[:MOST_NAMES])
    user = (
        f"the process changed its user and may not open the trace any more: {who}" if named else ""
    )
    is_only = bool(named) and len(named) == len(losers)
    if step.lost_events:
        budget = max((file.header.budget_bytes for file in step.data.files), default=0)
        cause = refusal_causes(losers, budget) or (
            f"the trace reached its budget of {size(budget)} a node, or could not grow: "
            "the disk is full, or ulimit -f, or the process had changed its user"
        )
        found.append(
            f"{number(step.lost_events)} calls have no record "
            f"({user if is_only else '; '.join(filter(None, (user, cause)))}); calls and bytes "
            "below include those of them that were counted; active time includes none of them, "
            "so it is too low"
        )
    failures = sum(process.failures for process in processes)
    if failures:
        budget = max((file.header.budget_bytes for file in step.data.files), default=0)
        common = refusal_causes(losers, budget) or (
            "WEIR_BUDGET, a full disk, ulimit -f or -v, no descriptor to spare, another user"
        )
        causes = user if is_only else "; ".join(filter(None, (user, common)))
        found.append(
            f"{number(failures)} times the trace had no room for what weir records: calls are then "
            f"counted without a record, or without their file's name; causes: {causes}"
        )
    return found


_UNREACHABLE = (
    "the directory of the trace could not be reached from the process "
    "(another root, a mount over it, or it was removed)"
)
_CAUSES = {
    errno.EMFILE: "the process had no descriptor left (ulimit -n)",
    errno.ENFILE: "the node had no descriptor left",
    errno.ENOMEM: "the process had no memory or address space left (ulimit -v)",
    errno.ENOENT: _UNREACHABLE,
    errno.ENOTDIR: _UNREACHABLE,
    errno.ESTALE: _UNREACHABLE,
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the quota on the disk is reached",
    errno.EFBIG: "the trace reached the largest size of a file (ulimit -f)",
    errno.EACCES: "the process may not open the trace",
    errno.EPERM: "the process may not open the trace",
    errno.EROFS: "the file system of the trace became read-only",
    REFUSED_BY_FILTER: "the process filters its system calls",
}


def refusal_causes(processes: Sequence[Process], budget: int) -> str:
    """Why the trace could not grow for these processes, each cause once; empty when none noted it.
    """
    reasons = dict.fromkeys(reason for one in processes for reason in one.refusals)
    causes = [
        f"the trace reached its budget of {size(budget)} a node"
        if reason == REFUSED_BY_BUDGET
        else _CAUSES.get(reason) or os.strerror(reason)
        for reason in reasons
    ]
    return "; ".join(dict.fromkeys(causes))


def _of_later_work(step: StepReport) -> list[str]:
    """Processes in the background do I/O that no Wall has."""
    job = step.data.step.job
    if job is None or job.ended_realtime_ns is None or not len(step.sums):
        return []
    later_ns = int(step.sums.last_ns.max()) - job.ended_realtime_ns
    if later_ns < LATER_NS:
        return []
    return [
        f"I/O went on for {later_ns / 1e9:.1f} s after the command had ended (in the background): "
        "Wall and %WALL do not include that time"
    ]


def _of_clocks(step: StepReport) -> list[str]:
    """Nodes whose place in time is uncertain; a node of nothing but launchers does not matter."""
    used = {m.file for m, is_chosen in zip(step.data.members, step.members) if is_chosen}
    if len(used) < 2:
        return []
    found = []
    unaligned = sum(step.data.alignments[i].barriers == 0 for i in used) - 1
    if unaligned > 0:
        found.append(
            f"{unaligned} of {len(used)} nodes share no barrier with the others: "
            "their clocks are not corrected"
        )
    worst = max((step.data.alignments[i].error_ns or 0.0 for i in used), default=0.0)
    if worst > UNSURE_NS:
        found.append(
            f"clocks of nodes may differ by up to {worst / 1e6:.1f} ms: "
            "active time is uncertain by as much where I/O is short"
        )
    return found


def _excluded(report: Report) -> list[str]:
    """A note on the files that the user excludes, and one on files of the system, each with the
    words that most of their calls are left out by (weir.analysis.exclusion)."""
    every = excluded_of(report)
    asked = every.asked
    assert asked is not None
    of_system = [word for word in every.words if word not in asked.words]
    files, calls = every.files - asked.files, every.totals.calls - asked.totals.calls
    rest = Totals(calls, every.totals.bytes - asked.totals.bytes, every.totals.ns - asked.totals.ns)
    of_detail = any(step.level == "detail" for step in report.steps)
    sizes = "; at level detail the sizes of requests have them" if of_detail else ""
    named = f"{_files(asked.files)} named by --exclude or WEIR_EXCLUDE ({_some(asked.words)}"
    system = f"{_files(files, 'system ')} ({_some(of_system)}; --include PATTERN"
    return _left_out(f"{named}{sizes})", [asked.totals]) + _left_out(f"{system}{sizes})", [rest])


def _files(count: int, kind: str = "") -> str:
    return counted(count, f"{kind}file")


def _some(words: Iterable[str]) -> str:
    every = list(words)
    return ", ".join(every[:MOST_WORDS]) + (", ..." if len(every) > MOST_WORDS else "")


def _left_out(what: str, parts: Sequence[Totals]) -> list[str]:
    """What is left out, in the figures of the totals: with it they are those of --all."""
    calls, moved, ns = (sum(getattr(part, key) for part in parts) for key in _FIGURES)
    if not (calls or moved or ns):
        return []
    count = counted(calls, "call")
    return [f"{LEFT_OUT}{count}, {moved / 1e6:.3f} MB and {ns / 1e9:.3f} s of {what}{SHOWN_BY}"]
