# SPDX-License-Identifier: Apache-2.0
"""Bytes that were read and written of each file, their range, and changes between both: what a
finding needs of the access patterns, by a pass that counts no sizes and strides."""

from __future__ import annotations

import numpy as np

from weir.analysis.columns import grouped
from weir.analysis.in_turn import in_turn
from weir.analysis.names import NameTable
from weir.analysis.remote import pass_over_records
from weir.analysis.step import StepData, name_numbers
from weir.report.files.last_names import by_last_number, renamed_of
from weir.report.frame.build import Report, StepReport, figure
from weir.report.patterns.compute import accesses_of
from weir.trace._abi import ALIGNMENT
from weir.trace.file import threads_for

MOVED = np.dtype([("name", "<i4"), ("way", "i1"), ("bytes", "<i8"), ("begin", "<i8"),
    ("end", "<i8"), ("switches", "<i8")])  # fmt: skip
_NO_COMMONS = 3  # of TraceFile.accesses


@figure
def moved_of(report: Report) -> list[np.ndarray]:
    """Of each step a row (MOVED) for each file and direction, under the names that the files had
    last. cost: a pass over the records, unless accesses_of() was asked for before."""
    found = []
    for at, (step, renamed) in enumerate(zip(report.steps, renamed_of(report))):
        if accesses_of in report.figures:
            columns = accesses_of(report)[at].columns
            rows = np.zeros(len(columns["name"]), MOVED)
            for key in MOVED.names or ():
                rows[key] = columns[key]
        else:
            rows = _of_step(step)
        rows["name"] = by_last_number(rows["name"], renamed)
        found.append(_added(rows))
    return found


def _of_step(step: StepReport) -> np.ndarray:
    if step.level != "trace":
        return np.zeros(0, MOVED)
    return _moved(step.data, step.names, step.members, step.choice.everything)


@pass_over_records
def _moved(data: StepData, names: NameTable, members: np.ndarray, all_names: bool) -> np.ndarray:
    pieces = [(data, index, members, all_names) for index in range(len(data.files))]
    made = np.zeros(0, MOVED)
    for index, found in enumerate(in_turn(_read, pieces)):
        name = name_numbers(data.files[index], found, names, data.name_numbers[index])
        made = _added(np.concatenate([made, *(_rows(found, name, way) for way in (0, 1))]))
    return made


def _read(data: StepData, index: int, members: np.ndarray, all_names: bool) -> np.ndarray:
    file, first = data.files[index], data.first_member(index)
    chosen = members[first : first + len(file.processes)]
    return file.accesses(np.zeros(0, ALIGNMENT), chosen, all_names, _NO_COMMONS,
        threads_for(file.header.file_bytes))[0]


def _rows(found: np.ndarray, name: np.ndarray, way: int) -> np.ndarray:
    its = np.flatnonzero(found["calls"][:, way] > 0)
    rows = np.zeros(len(its), MOVED)
    rows["name"], rows["way"], rows["switches"] = name[its], way, found["switches"][its]
    for key in ("bytes", "begin", "end"):
        rows[key] = found[key][its, way]
    return rows


def _added(rows: np.ndarray) -> np.ndarray:
    """One row for each file and direction."""
    if not len(rows):
        return rows
    order, begins = grouped(rows["name"], rows["way"])
    made = rows[order[begins]]
    for key, how in (("bytes", np.add), ("switches", np.add), ("begin", np.minimum),
            ("end", np.maximum)):
        made[key] = how.reduceat(rows[key][order], begins)
    return made
