# SPDX-License-Identifier: Apache-2.0
"""Critical I/O time of a run by file: of steps with MPI what the replay found, of those without the
I/O of the process that is waited for."""

from __future__ import annotations

import numpy as np

from weir.analysis.names import NO_NAME
from weir.report.files.groups import FileGroup
from weir.report.files.last_names import last_names_of
from weir.report.frame.build import Report, figure
from weir.report.waits.last_files import waits_of
from weir.report.waits.summary import synchronisation_of
from weir.report.wall.compute import wall_time_of


@figure
def serial_ns(report: Report) -> dict[int, int]:
    """By place of a step without MPI, in a run that has steps with MPI: the I/O of its process, or
    of the one that ends last, with that of commands that it started."""
    waits = [synchronisation_of(step).waits for step in report.steps]
    found = {}
    for at, (step, one) in enumerate(zip(report.steps, waits)):
        if one is not None or all(other is None for other in waits):
            continue
        wall = wall_time_of(step)
        if wall is not None:
            found[at] = int(wall.of_ranks.io_ns[int(wall.end_ns.argmax())])
    return found


@figure
def critical_by_step(report: Report) -> list[int | None]:
    """ns by which I/O delays each step, in order; None where it is not known: in a run without
    records of MPI, and in a step without MPI whose wall time is not known."""
    found = [synchronisation_of(step).waits for step in report.steps]
    return [serial_ns(report).get(at) if one is None else one.critical_ns
        for at, one in enumerate(found)]


def critical_ns(report: Report) -> int | None:
    """By which I/O delays the run; None where that is known of no step."""
    known = [one for one in critical_by_step(report) if one is not None]
    return sum(known) if known else None


@figure
def critical_by_file(report: Report) -> dict[str, int]:
    """Critical I/O time in ns by the path that a file had last, over all steps whose waits in MPI
    were recorded; of a run that has such steps also of those without MPI, by their time."""
    found: dict[str, int] = {}
    for at, ns in serial_ns(report).items():
        step = report.steps[at]
        named = last_names_of(report)[at]
        columns, _ = named.by_last(report.choice.rows(step.data, named.columns))
        columns = columns.where(columns.by_code("RWOCM") & columns.is_file)
        names, place = np.unique(columns.name, return_inverse=True)
        its = np.bincount(place, columns.own_ns, len(names))
        for name, part in zip(names.tolist(), (its * (ns / max(its.sum(), 1))).tolist()):
            path = step.names[name] if name != NO_NAME else "(no file)"
            found[path] = found.get(path, 0) + round(part)
    for waits in waits_of(report):
        for file in waits.files if waits is not None else ():
            found[file.file] = found.get(file.file, 0) + file.critical_ns
    return found


def critical_by_group(groups: list[FileGroup], by_file: dict[str, int]) -> dict[FileGroup, int]:
    """The same of each group of files; two groups may have one name."""
    return {one: sum(by_file.get(path, 0) for path in one.members) for one in groups}
