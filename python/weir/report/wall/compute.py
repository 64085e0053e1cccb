# SPDX-License-Identifier: Apache-2.0
"""The wall time of ranks, split into what they did: the parts add up to it to the nanosecond.

A moment of a rank is I/O, when its line (lines.py) is in I/O; else waiting for I/O, imbalance
(waiting for a rank that computes) or communication, when it is in a call of MPI (causes.py); else
computing. Each rank counts from the start of its process to the last sign of life of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from weir.analysis.names import NameTable
from weir.analysis.remote import for_each
from weir.analysis.step import StepData
from weir.report.frame.build import Report, StepReport, figure
from weir.report.frame.declared import Listing
from weir.report.wall.causes import Caused, Points, Stays, caused, stays_of
from weir.report.wall.lines import ALL_CALLS, ALL_IO, CALLS, IO, UNIONS, line_at
from weir.report.waits.account import Account
from weir.report.waits.locations import Locations, locations_of
from weir.report.waits.phases import PhaseSpans
from weir.report.waits.summary import synchronisation_of
from weir.trace.ops import MPI

QUICK_EVENTS = 5_000_000  # of a step: more take some seconds
PARTS = ("computing_ns", "io_ns", "io_wait_ns", "imbalance_ns", "communication_ns")


@dataclass(frozen=True)
class Parts:
    """Arrays by window of a rank, ns; the first five add up to the length of the window.

    background_ns: I/O of other threads while the rank computes, which is part of computing_ns."""

    computing_ns: np.ndarray
    io_ns: np.ndarray
    io_wait_ns: np.ndarray
    imbalance_ns: np.ndarray
    communication_ns: np.ndarray
    background_ns: np.ndarray

    def sums(self, rows: np.ndarray) -> dict[str, int]:
        """Of some windows."""
        return {one.name: int(getattr(self, one.name)[rows].sum()) for one in fields(self)}


@dataclass(frozen=True)
class WallTime:
    """One step. of_ranks: of each rank's whole time; of_spans: of each stretch of a phase."""

    locations: Locations
    begin_ns: np.ndarray
    end_ns: np.ndarray
    of_ranks: Parts
    spans: PhaseSpans
    of_spans: Parts


def may_be_known(step: StepReport) -> bool:
    """Whether the step recorded calls of MPI at level trace, found without reading records."""
    return step.level == "trace" and bool((step.data.columns.layer == MPI).any())


def is_quick(step: StepReport) -> bool:
    """Whether passes over its records are short enough to make them unasked."""
    events = sum(int(file.array("chunks")["entries"].sum()) for file in step.data.files)
    return events <= QUICK_EVENTS


def json_unless_slow(report: Report, is_named: bool, *listings: Listing) -> dict[str, Any]:
    """Rows of each listing under its name; null where its passes take some seconds and --tables did
    not name it."""
    if not is_named and not all(map(is_quick, report.steps)):
        return dict.fromkeys(one.name for one in listings)
    return {one.name: one.json(one.rows(report)) for one in listings}


@figure
def wall_time_of(step: StepReport) -> WallTime | None:
    """None where it is not known: single calls, or those of MPI in a parallel program, were not
    recorded, or records are missing."""
    if step.level != "trace":
        return None
    found = synchronisation_of(step)
    locations = found.account.locations
    if found.waits is None:
        if any(member.process.ranks > 1 for member in step.data.members):
            return None
        locations = locations_of(step.data, _roots(step.data))
    if not len(locations):
        return None
    return _split(step.data, step.names, locations, found.account, found.spans)


def _roots(data: StepData) -> list[int]:
    """Processes that no other process of the step started, of a step without MPI."""
    children = {child for every in data.children.values() for child in every}
    members = enumerate(data.members)
    pids = {(one.file, one.process.pid) for one in data.members if not one.is_launcher}
    return [
        index for index, one in members
        if not one.is_launcher and one.process.whole
        and (index not in children or (one.file, one.process.ppid) not in pids)
    ]  # fmt: skip


def _split(
    data: StepData, names: NameTable, locations: Locations, account: Account, spans: PhaseSpans
) -> WallTime:
    begin, end = lives_of(data, locations)
    everyone = np.arange(len(locations))
    where = np.r_[everyone, everyone, spans.location, spans.location]
    moments = np.r_[begin, end, spans.begin_ns, spans.end_ns]

    def lines(location: np.ndarray, at_ns: np.ndarray) -> np.ndarray:
        return lengths_at(data, names, locations, location, at_ns)

    points = Points(_stays(account, lines), where, moments)
    lengths = lines(points.location, points.at_ns)
    of_waits = caused(points, lengths)
    parts = [
        _parts(points, lengths, of_waits, *window)
        for window in ((everyone, begin, end), (spans.location, spans.begin_ns, spans.end_ns))
    ]
    return WallTime(locations, begin, end, parts[0], spans, parts[1])


Lines = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _stays(account: Account, lines: Lines) -> Stays:
    """Of a call that waits for several ranks, the wait for the one that was longest in I/O, or that
    computed longest."""
    waits = account.waits
    weight = np.zeros(len(waits), np.int64)
    several = np.bincount(waits.group, minlength=1)[waits.group] > 1
    some = waits.where(several)
    if len(some):
        where = np.r_[some.awaited, some.awaited], np.r_[some.begin_ns, some.until_ns]
        states = lines(*where)
        length = some.until_ns - some.begin_ns
        half = len(some)
        io = states[ALL_IO][half:] - states[ALL_IO][:half]
        free = length - (states[ALL_CALLS][half:] - states[ALL_CALLS][:half])
        weight[several] = 2 * io + free
    return stays_of(waits, weight)


def lengths_at(
    data: StepData, names: NameTable, locations: Locations, location: np.ndarray, at_ns: np.ndarray
) -> np.ndarray:
    """The unions of each rank's line up to each of its moments, by union and moment."""
    order = np.argsort(location, kind="stable")
    limits = np.searchsorted(location[order], np.arange(len(locations) + 1))
    rows = [order[low:high] for low, high in zip(limits[:-1], limits[1:])]
    pieces = [
        ((int(locations.speaker[one]), locations.members[one]), at_ns[its])
        for one, its in enumerate(rows)
    ]
    out = np.zeros((UNIONS, len(location)), np.int64)
    for its, line in zip(rows, for_each(line_at, data, names, pieces)):
        for union in range(UNIONS):
            out[union, its] = line.until(union, at_ns[its])
    return out


def _parts(
    points: Points,
    lengths: np.ndarray,
    of_waits: Caused,
    location: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
) -> Parts:
    low, high = points.find(location, begin), points.find(location, end)

    def within(sums: np.ndarray) -> np.ndarray:
        return sums[high] - sums[low]

    io, calls = within(lengths[IO]), within(lengths[CALLS])
    in_mpi = calls - io
    io_wait = np.clip(within(of_waits.io_ns), 0, in_mpi)
    imbalance = np.clip(within(of_waits.computing_ns), 0, in_mpi - io_wait)
    background = within(lengths[ALL_CALLS]) - calls
    computing = end - begin - calls
    return Parts(computing, io, io_wait, imbalance, in_mpi - io_wait - imbalance, background)


def lives_of(data: StepData, locations: Locations) -> tuple[np.ndarray, np.ndarray]:
    """Start and last sign of life of each rank's own process."""
    last = np.zeros(len(data.members), np.int64)
    np.maximum.at(last, data.columns.member, data.columns.last_ns)
    begin, end = np.zeros((2, len(locations)), np.int64)
    for location, member in enumerate(locations.speaker.tolist()):
        one = data.members[member]
        line, process = data.lines[one.file], one.process
        ends = [line.timestamp(t) for t in (process.last_ticks, process.end_ticks) if t]
        begin[location] = line.timestamp(process.start_ticks)
        end[location] = max([begin[location], *ends, int(last[member])])
    return begin, end
