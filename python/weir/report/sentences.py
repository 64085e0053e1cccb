# SPDX-License-Identifier: Apache-2.0
"""What a reader in a hurry must know of a run, in sentences; for the first screen of the text and
for the page."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import datetime, timezone

from weir.analysis.names import shown
from weir.report.files.groups import FileGroup
from weir.report.frame.amounts import amount, number, seconds, share
from weir.report.frame.build import Report, StepReport
from weir.report.frame.programs import one_of, ranks_text
from weir.report.output_cost.compute import Cost, output_costs_of
from weir.report.units.compute import units_of
from weir.report.waits.locations import EVERYTHING
from weir.report.waits.outside import outside_ns
from weir.report.waits.summary import synchronisation_of
from weir.report.wall.critical import critical_by_file, critical_by_group, critical_ns

# Sentences without which the figures mislead: they stand above them.
GRAVE = re.compile(
    r"INCOMPLETE|damaged|LOST BYTES"
    r"|step [^:]*: (?:[\d,]+ of [\d,]+ process(?:es)? did not exit normally"
    r"|the command (?:ended with|was killed)|no trace file|`weir trace` was killed"
    r"|[\d,]+ calls have no record)"
)


LONGEST = 40  # letters of a part of the heading that is not broken into lines
MORE = 1.1  # times the time in calls to files: what output takes beside them is worth a sentence
LEAST_SHARE = 0.01  # of a run, worth a sentence
UNKNOWN_SHARE = 0.02
UNEVEN_STEPS = 1.5  # times the mean of all steps: below it they share the time about evenly


def is_grave(note: str) -> bool:
    """Whether the figures mislead without this note: it stands above them."""
    return GRAVE.match(note) is not None


def heading(report: Report) -> dict[str, str]:
    """Name of the run, its steps, ranks, nodes and start in one line, and who ran it in which job
    of a batch system, as far as that was recorded."""
    nodes = max((len(step.data.files) for step in report.steps), default=0)
    started = min((step.started_ns for step in report.steps if step.started_ns), default=0)
    when = datetime.fromtimestamp(started // 10**9,
        timezone.utc).strftime("%Y-%m-%d %H:%M UTC") if started else ""
    parts = [count(len(report.steps), "step"), ranks_text(report), count(nodes, "node"), when]
    parts = [part.replace(" ", "\u00a0") if len(part) < LONGEST else part for part in parts]
    return {"run": os.path.basename(os.path.abspath(report.path)),
        "facts": " · ".join(filter(None, parts)), "who": " · ".join(_who(report))}


def _who(report: Report) -> Iterator[str]:
    jobs = [job for step in report.steps if (job := step.data.step.job) is not None]
    users = list(dict.fromkeys(job.user for job in jobs if job.user))
    if users:
        yield f"user {users[0]}" + (f" and {len(users) - 1} more" if len(users) > 1 else "")
    ids = list(dict.fromkeys(f"{job.batch_system} {job.job_id}" for job in jobs if job.job_id))
    if ids:
        yield f"job {ids[0]}" + (f" and {count(len(ids) - 1, 'other')}" if len(ids) > 1 else "")


def count(count: int, what: str) -> str:
    return f"{number(count)} {what}{'' if count == 1 else 's'}"


def sentences(report: Report, groups: list[FileGroup]) -> Iterator[str]:
    """What a reader in a hurry must know, the most important first."""
    facts = (_time(report), _critical(report, groups), _output(report) or _fortran(report),
        _files(report, groups), _steps(report))
    yield from filter(None, facts)


def _time(report: Report) -> str:
    wall, whole = report.wall_ns / 1e9, report.all.seconds
    if not report.all.calls:
        return f"No I/O on files was recorded in the {seconds(wall)} of the run."
    if not report.keeps_names:
        return (
            f"All processes together spent {seconds(whole)} in calls, those on pipes and terminals "
            f"included, during the {seconds(wall)} of the run. To separate files, trace with "
            "--level detail."
        )
    if report.active_ns is None:
        return (
            f"{report.who(None).capitalize()} together spent {seconds(whole)} in I/O during the {seconds(wall)} of the "
            f"run."
        )
    active = report.active_ns / 1e9
    who = f"At least one {one_of(report)}"
    if report.choice.rank is not None:
        who = report.choice.subject
    return (
        f"{who} was in I/O during {seconds(active)} of the run's {seconds(wall)} "
        f"({share(active, wall)}). "
        f"Faster I/O on files can save {seconds(active)} at most."
    )


def _critical(report: Report, groups: list[FileGroup]) -> str | None:
    """What the run would have been shorter without I/O, where MPI was recorded
    (docs/guide/waits.md); of all ranks, as waits are. And the files that belong together that it
    waits for most: each of them alone may take little."""
    if report.choice.rank is not None:
        return None
    critical = critical_ns(report) or 0
    by_file = critical_by_file(report)
    caveats = _of_unknown(report) + _of_others(report)
    bound, threads = _of_threads(report, critical)
    if bound:
        return f"{bound}{caveats}"
    caveats = threads + caveats
    if not critical or not by_file:
        return caveats.strip() or None
    delays = (f"I/O delays the run by {seconds(critical / 1e9)} ({share(critical, report.wall_ns)} "
        "of its time)")
    if critical < LEAST_SHARE * report.wall_ns:
        return f"{delays}.{caveats}"
    whole = critical_by_group(groups, by_file)
    most = max(whole, key=lambda one: whole[one], default=None)
    file = max(by_file, key=lambda name: by_file[name])
    if most is not None and most.files > 1 and whole[most] > by_file[file]:
        worst, ns = f"the {_members(most)}", whole[most]
    else:
        worst, ns = f"the file {shown(file, report.cwd)}", by_file[file]
    return (
        f"{delays}: with calls of I/O at no cost and all else as measured, it would take "
        f"{seconds((report.wall_ns - critical) / 1e9)}. The largest part of this delay, "
        f"{seconds(ns / 1e9)}, is I/O on "
        f"{worst}.{caveats}"
    )


def _of_unknown(report: Report) -> str:
    """Waits of ranks that cannot be followed."""
    found = [one for step in report.steps if (one := synchronisation_of(step).waits) is not None]
    unknown = sum(one.unknown_ns for one in found)
    of_windows = {row.routine for one in found for row in one.routines
        if row.routine.startswith("MPI_Win_")}
    text = ""
    if unknown >= UNKNOWN_SHARE * report.wall_ns:
        text += f" Not followed: {seconds(unknown / 1e9)} of waits in MPI, awaited rank not known."
    if of_windows and "MPI_Win_fence" not in of_windows:
        text += (
            " Not followed: waits in one-sided communication, which count as computing (windows "
            "without MPI_Win_fence)."
        )
    return text


def _of_others(report: Report) -> str:
    """What may delay the job script, but is on no path of ranks."""
    ns = sum(outside_ns(step) for step in report.steps)
    if not ns:
        return ""
    return (
        f" Programs without MPI that ran before or after the ranks were in I/O for another "
        f"{seconds(ns / 1e9)}, which is not in these figures."
    )


def _of_threads(report: Report, critical_ns: int) -> tuple[str, str]:
    """What a trace cannot show: whether a rank waits for its threads. A sentence that leads with
    what they may cost, where the delay that is certain is next to nothing; one that adds it."""
    found = [one for step in report.steps if (one := synchronisation_of(step).waits) is not None]
    most = sum(one.critical_most_ns for one in found)
    if most - critical_ns < LEAST_SHARE * report.wall_ns:
        return "", ""
    background = seconds(sum(one.background_ns for one in found) / 1e9)
    if critical_ns < LEAST_SHARE * report.wall_ns:
        certain = f"by {seconds(critical_ns / 1e9)}" if critical_ns else "by nothing"
        return (
            f"I/O delays the run by up to {seconds(most / 1e9)} ({share(most, report.wall_ns)} of "
            f"its time) if ranks wait for their threads that do not call MPI, which the trace does "
            f"not show: these are in I/O for {background}. Else it delays the run {certain}."
        ), ""  # fmt: skip
    return "", (
        f" Threads that do not call MPI were in I/O for another {background}, which counts as "
        f"hidden; if ranks wait for them, I/O delays the run by up to {seconds(most / 1e9)}."
    )


def _output(report: Report) -> str | None:
    """What output takes of the rank that it takes most of, with what is not in calls to files
    (docs/guide/output-cost.md). More than the first sentence says that faster I/O can save: so this
    one states how much of it is I/O."""
    costs = [found.whole for found in output_costs_of(report) if found is not None]
    elapsed = sum(one.elapsed_ns for one in costs)
    if not costs or elapsed < max(LEAST_SHARE * report.wall_ns, MORE * (report.active_ns or 0)):
        return None  # next to nothing, or no more than the calls to files of the first sentence
    io, mpi, library, inferred, waiting, waited = (
        sum(getattr(one, f"{name}_ns") for one in costs) / 1e9
        for name in ("system", "mpi", "library", "inferred", "waiting", "waited"))
    rest = [f"{seconds(cost)} {what}" for cost, what in (
        (library, "in libraries that convert, compress and copy"), (mpi, "in MPI and MPI-IO"),
        (inferred, "of gathers and packing before these calls (inferred)"),
    ) if cost >= LEAST_SHARE * elapsed / 1e9]
    text = (
        f"Output takes at least {seconds(elapsed / 1e9)}{_of_whom(report, costs)} "
        f"({share(elapsed, report.wall_ns)} of the run), of which {seconds(io)} is I/O"
    )
    if rest:
        text += f". Faster I/O leaves the rest as it is: {_listed(rest)}"
    if waiting >= LEAST_SHARE * report.wall_ns / 1e9:
        text += f"; in these calls it waits for other ranks for another {seconds(waiting)}"
    if waited >= LEAST_SHARE * report.wall_ns / 1e9:
        text += f"; other ranks wait for it, {seconds(waited)} added up"
    return f"{text}."


def _of_whom(report: Report, costs: list[Cost]) -> str:
    """The rank of all these costs, where there is one and others beside it."""
    ranks = {one.rank for one in costs}
    several = any(len(step.ranks) > 1 for step in report.steps)
    if not several or len(ranks) > 1 or costs[0].rank.label == EVERYTHING:
        return ""
    return f" of {costs[0].rank.title}"


def _listed(parts: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def _fortran(report: Report) -> str | None:
    """What the Fortran library does in statements beside I/O, of all ranks together."""
    units = units_of(report)
    ns, library_ns = sum(one.ns for one in units), sum(one.library_ns for one in units)
    if library_ns < LEAST_SHARE * report.wall_ns:
        return None
    return (
        f"Fortran statements took {seconds(ns / 1e9)} of {report.who(None)} together, of which "
        f"{seconds(library_ns / 1e9)} in the Fortran library itself (conversion to text and back, "
        "copies): faster I/O leaves that as it is."
    )


def _members(group: FileGroup) -> str:
    return f"{number(group.files)} files named like {group.name}"


def _files(report: Report, groups: list[FileGroup]) -> str | None:
    """The file, or the files that belong together, with the most time."""
    if not groups or not groups[0].ns:
        return None
    most = groups[0]
    whose = (
        f"The file with the most I/O time is {most.name}"
        if most.files == 1
        else f"Most I/O time goes to the {_members(most)}"
    )
    size = most.bytes_read + most.bytes_written
    moved = f" and {amount(size)}" if size else ""
    return (
        f"{whose}: {seconds(most.ns / 1e9)} in {count(most.calls, 'call')}{moved}, "
        f"{share(most.ns, report.all.ns)} of the time of all files."
    )


def _steps(report: Report) -> str | None:
    """The step with much more I/O than the others. Active time decides, or I/O time where the
    active time is not known."""
    if len(report.steps) < 2:
        return None

    def cost(step: StepReport) -> float:
        return (step.active_ns if report.active_ns is not None else step.all.ns) / 1e9

    most = max(report.steps, key=cost)
    whole = sum(map(cost, report.steps))
    if not whole or cost(most) * len(report.steps) < UNEVEN_STEPS * whole:
        return None
    return (
        f"Step {most.name} has {share(cost(most), whole)} of the I/O time of all steps: "
        f"{seconds(cost(most))} of its {seconds(most.wall_ns / 1e9)} wall time."
    )
