# SPDX-License-Identifier: Apache-2.0
"""What a report does not have, in sentences: bytes that the kernel counted and the trace lacks,
programs without records, processes that run still."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from weir.report.frame.amounts import counted as counted_of
from weir.report.frame.amounts import number
from weir.report.frame.build import Report, StepReport
from weir.report.processes.account import DAMAGE
from weir.report.processes.compute import (
    Group, ProcessFigures, Unseen, background_of, is_unseen, unseen_of
)  # fmt: skip
from weir.trace.children import signal_name
from weir.trace.file import Problem

MOST_NAMES = 3


def unseen_statement(report: Report) -> str | None:
    """The first line of a report of which a part was not seen: how much, of which processes, and
    the likely way; before that the damage that is the reason."""
    parts = []
    several = len({file.node for step in report.steps for file in step.data.files}) > 1

    def where(node: str) -> str:
        return f"{node}, " if several else ""

    steps = [unseen_of(step) for step in report.steps]
    missed, counted = sum(one.bytes for one in steps), sum(one.counted for one in steps)
    names = []
    if is_unseen(missed, counted):
        if damage := damage_that_hides(report):
            more = f" and {counted_of(len(damage) - 1, 'more place')}" if len(damage) > 1 else ""
            parts.append(f"damaged: {damage[0]}{more}")
        parts.append(
            f"{missed / 1e6:.1f} of {counted / 1e6:.1f} MB that the kernel counted were not seen"
        )
        worst = sorted((one for step in steps for one in step.processes), key=lambda p: -p.unseen)
        names += [_missed(one, where(one.node)) for one in worst]
    untraced = sum(len(one.untraced) for one in steps)
    if untraced:
        parts.append(f"{_programs(untraced)} left no records")
        names += [name for step in steps for name in _names_of_untraced(step, where)]
    running = [(step, index) for step in report.steps for index in background_of(step)]
    if running:
        subject = "1 process runs" if len(running) == 1 else f"{len(running)} processes run"
        parts.append(f"{subject} still in the background")
        names += [_running(step, index) for step, index in running]
    if (no_rank := _without_ranks(report, untraced)) is not None:
        parts.append(no_rank)
    if not parts:
        return None
    listed = "; ".join(names[:MOST_NAMES])
    if len(names) > MOST_NAMES:
        listed += f"; and {len(names) - MOST_NAMES} more"
    return f"INCOMPLETE: {'; '.join(parts)}" + (f": {listed}" if listed else "")


def damage_that_hides(report: Report) -> list[Problem]:
    """Damage of the trace files that lack bytes which the kernel counted; nothing where so little
    is missing that the report does not say it."""
    steps = [unseen_of(step) for step in report.steps]
    if not is_unseen(sum(one.bytes for one in steps), sum(one.counted for one in steps)):
        return []
    return [problem for step, found in zip(report.steps, steps) for file in step.data.files
        if any(one.way == DAMAGE and one.node == file.node for one in found.processes)
        for problem in file.problems]


def _missed(one: ProcessFigures, where: str) -> str:
    way = "" if one.way == DAMAGE else f", likely by {one.way}"
    return f"{one.command[:60]} ({where}pid {one.pid}, {one.unseen / 1e6:.1f} MB{way})"


def _without_ranks(report: Report, untraced: int) -> str | None:
    """Programs that left no records are named with the reason."""
    jobs = [step.data.step.job for step in report.steps if step.data.has_no_rank]
    if not jobs:
        return None
    failed = next((job.exit_status for job in jobs if job and job.exit_status), None)
    if any(step.data.problems for step in report.steps if step.data.has_no_rank):
        return "no record of a rank is left in the damaged trace"
    said = "no rank was traced, the launcher alone left records"
    if failed is not None:
        return f"{said}: it {ending(failed)}"
    return said if untraced else (
        f"{said}: its ranks were started without LD_PRELOAD and WEIR_TRACE_DIR")


def _running(step: StepReport, index: int) -> str:
    member = step.data.members[index]
    who = who_is(step, member.process.pid, member.rank if member.process.rank >= 0 else -1,
        member.file)
    return f"{member.process.command_line[:60]} ({who})"


def who_is(step: StepReport, pid: int, rank: int, file: int) -> str:
    """What tells processes of one program apart: pid, rank and, in a run on several, the node."""
    parts = [f"pid {pid}", f"rank {rank}" if rank >= 0 else ""]
    if len(step.data.files) > 1:
        parts.append(f"on {step.data.files[file].node}")
    return ", ".join(filter(None, parts))


def ending(status: int) -> str:
    """How a command ended, behind its name."""
    if status >= 0:
        return f"ended with status {status}"
    name = signal_name(-status)
    return f"was killed by signal {-status}" + (f" ({name})" if name.startswith("SIG") else "")


def _programs(count: int) -> str:
    return f"{number(count)} {'program' if count == 1 else 'programs'}"


def _names_of_untraced(step: Unseen, where: Callable[[str], str]) -> list[str]:
    """Programs that left no records, those with the most bytes first: those whose bytes are known
    together are named together, and those that are alike."""
    alike: dict[tuple, Group] = {}
    for one in (group for group in step.groups if group.matters):
        words = {(program.program, program.reason) for program in one.programs}
        key = (one.programs[0].node, frozenset(words), one.bytes is None)
        its = alike.get(key)
        alike[key] = one if its is None else Group(its.programs + one.programs,
            None if its.bytes is None or one.bytes is None else its.bytes + one.bytes)
    groups = sorted(alike.values(), key=lambda one: -(one.bytes or 0))
    return [_group(one, where(one.programs[0].node)) for one in groups]


def _group(group: Group, where: str) -> str:
    some = group.programs
    pids = _few(str(one.pid) for one in some if one.pid)
    ranks = _few(str(one.rank) for one in some if one.rank >= 0)
    who = [f"{where}pid {pids}" if pids else f"{where}pid unknown"]
    if ranks:
        who.append(f"rank {ranks}" if ", " not in ranks else f"ranks {ranks}")
    if group.bytes is not None:
        who.append(f"{group.bytes / 1e6:.1f} MB" + " together" * (len(some) > 1))
    if signals := _few(signal_name(one.signal) for one in some if one.signal):
        who.append(f"killed by {signals}")
    return f"{_few(one.program[:60] for one in some)} ({', '.join(who)}: " \
           f"{_few(one.reason for one in some)})"


def _few(words: Iterator[str]) -> str:
    """Each word once, and how many more there are."""
    every = list(dict.fromkeys(words))
    more = f" and {number(len(every) - MOST_NAMES)} more" if len(every) > MOST_NAMES else ""
    return ", ".join(every[:MOST_NAMES]) + more


def notes_of_untraced(step: StepReport) -> list[str]:
    """Programs without records of which the kernel says that they did next to nothing. Of those
    alone that nothing is known of, such as a small static program, there is no note."""
    harmless = [
        one for group in unseen_of(step).groups if not group.matters for one in group.programs
    ]  # fmt: skip
    harmless.sort(key=lambda one: one.reason.startswith("static"))
    if not harmless or harmless[0].reason.startswith("static"):
        return []
    named = "; ".join(f"{one.program[:60]}: {one.reason}" for one in harmless[:MOST_NAMES])
    if len(harmless) > MOST_NAMES:
        named += f"; and {len(harmless) - MOST_NAMES} more"
    return [
        f"{_programs(len(harmless))} left no records. Their parents got less than 64 KiB of I/O "
        f"from each when they waited for them; the I/O of one in the background, for which nobody "
        f"waited, is not known: {named}"
    ]
