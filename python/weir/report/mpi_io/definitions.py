# SPDX-License-Identifier: Apache-2.0
"""Reads and writes within calls of netCDF-C and PnetCDF that define a file: where the header has
outgrown its room, these calls move the data of the file.

Which call a request lies in only records show: this is a pass over those of the processes that make
such calls, and nothing for all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from weir.analysis.names import NameTable
from weir.analysis.remote import pass_over_records
from weir.analysis.step import StepData
from weir.report.frame.build import StepReport, figure
from weir.trace.events import Events, read_events
from weir.trace.file import LOST
from weir.trace.ops import ERROR, NETCDF, PNETCDF, POSIX, op_named, ops

_DEFINE = "library_define"
# In a batch: the caller, and the file.
Caller = tuple[int, int, int]


@dataclass
class Within:
    """Requests within definitions of one file."""

    requests: int = 0
    bytes: int = 0
    ns: int = 0

    def __add__(self, other: Within) -> Within:
        return Within(self.requests + other.requests, self.bytes + other.bytes,
            self.ns + other.ns)


@figure
def within_definitions_of(step: StepReport) -> dict[str, Within]:
    """By file, of all chosen ranks."""
    if step.level != "trace":
        return {}
    callers = np.zeros(len(step.data.members), bool)
    callers[list(step.data.members_with(op_named(_DEFINE).value))] = True
    callers &= step.members
    return _within(step.data, step.names, callers) if callers.any() else {}


@pass_over_records
def _within(data: StepData, names: NameTable, callers: np.ndarray) -> dict[str, Within]:
    define = np.zeros(256, bool)
    define[op_named(_DEFINE).value] = True
    moves = np.zeros(256, bool)
    moves[[value for value, op in ops().items()
        if op.layer == POSIX and op.op_class in "RW"]] = True
    found: dict[str, Within] = {}
    for index, file in enumerate(data.files):
        first, clock = data.first_member(index), data.lines[index].native()
        chosen = callers[first : first + len(file.processes)]
        if not chosen.any():
            continue
        calls = _spans(read_events(file, clock, wanted=define, chosen=chosen))
        for events in read_events(file, clock, wanted=moves, chosen=chosen) if calls else ():
            for text, one in _inside(events, calls):
                path = names[int(data.name_numbers[index][text])]
                found[path] = found.get(path, Within()) + one
    return found


def _spans(batches: Iterator[Events]) -> dict[Caller, tuple[np.ndarray, np.ndarray]]:
    """When the definitions of each file began, rising, and when the last one of these ended."""
    made: dict[Caller, list[np.ndarray]] = {}
    for events in batches:
        is_one = np.isin(events["layer"], (NETCDF, PNETCDF))
        span = np.column_stack([events["start_ns"], events["start_ns"] + events["duration_ns"]])
        for caller, at in _by_caller(events, is_one):
            made.setdefault(caller, []).append(span[at])
    ordered = {caller: np.concatenate(spans) for caller, spans in made.items()}
    ordered = {caller: spans[np.argsort(spans[:, 0], kind="stable")]
        for caller, spans in ordered.items()}
    return {caller: (spans[:, 0].copy(), np.maximum.accumulate(spans[:, 1]))
        for caller, spans in ordered.items()}


def _by_caller(events: Events, mask: np.ndarray) -> Iterator[tuple[Caller, np.ndarray]]:
    at = np.flatnonzero(mask & (events["text"] != LOST))
    keys = np.column_stack([events[name][at] for name in ("process", "thread", "text")])
    callers, place = np.unique(keys, axis=0, return_inverse=True)
    for number, caller in enumerate(callers.tolist()):
        yield (caller[0], caller[1], caller[2]), at[place.reshape(-1) == number]


def _inside(events: Events, calls: dict[Caller, tuple[np.ndarray, np.ndarray]],
        ) -> Iterator[tuple[int, Within]]:  # fmt: skip
    """Text and requests, of each caller and file of a batch."""
    is_whole = (events["flags"] & ERROR) == 0
    for caller, at in _by_caller(events, is_whole & (events["layer"] == POSIX)):
        if caller not in calls:
            continue
        began, ended = calls[caller]
        start = events["start_ns"][at]
        before = np.searchsorted(began, start, side="right") - 1
        its = at[(before >= 0) & (start < ended[before])]
        if len(its):
            yield caller[2], Within(len(its), int(events["bytes"][its].sum()),
                int(events["duration_ns"][its].sum()))
