# SPDX-License-Identifier: Apache-2.0
"""The wall time of ranks, split into what they did: the parts add up to it to the nanosecond.

A moment of a rank is I/O, when its line (lines.py) is in I/O; else waiting for I/O, imbalance
(waiting for a rank that computes) or communication, when it is in a call of MPI; else computing.
Who waits for whom, from when until when, is what the replay of the step found; what the awaited
rank did meanwhile is followed over as many ranks as it takes (native/reader/causes.cc). Each rank
counts from the start of its process to the last sign of life of it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from weir.analysis.causes import Causes
from weir.analysis.lines import ALL_CALLS, ALL_IO, CALLS, IO, LineOf, lengths_of
from weir.analysis.names import NameTable
from weir.analysis.remote import answers_of
from weir.analysis.step import StepData
from weir.report.frame.build import StepReport, figure
from weir.report.wall.lines import line_of
from weir.report.waits.account import Account, causes_of
from weir.report.waits.locations import Locations, lives_of, locations_of, roots_of
from weir.report.waits.phases import PhaseSpans
from weir.report.waits.summary import synchronisation_of
from weir.trace.ops import MPI

FROM_ENVIRONMENT = 1  # rank_source of a process that did not call MPI_Init
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
    return step.level == "trace" and bool((step.data.sums.by_file.layer == MPI).any())


@figure
def wall_time_of(step: StepReport) -> WallTime | None:
    """None where it is not known: single calls, or those of MPI in a parallel program, were not
    recorded, or records are missing. Ranks of a launcher that never started MPI are programs of
    their own."""
    if step.level != "trace":
        return None
    found = synchronisation_of(step)
    locations, spans = found.account.locations, found.spans
    if found.waits is None:
        if any(one.process.ranks > 1 and one.process.rank_source != FROM_ENVIRONMENT
                for one in step.data.members):  # fmt: skip
            return None
        locations = locations_of(step.data, roots_of(step.data))
        spans = spans.of_ranks(locations.of_member[found.account.locations.speaker])
    if not len(locations):
        return None
    return _split(step.data, step.names, locations, found.account, spans)


def _split(
    data: StepData, names: NameTable, locations: Locations, account: Account, spans: PhaseSpans
) -> WallTime:
    begin, end = lives_of(data, locations).T
    caused = account.caused
    if caused is None or not np.array_equal(locations.speaker, account.locations.speaker):
        caused = _caused(data, names, locations, account, spans, np.c_[begin, end])
    half = len(caused) // 2
    parts = _parts(caused[:half], caused[half:],
        np.r_[end, spans.end_ns] - np.r_[begin, spans.begin_ns])
    of_ranks, of_spans = (
        Parts(*(column[rows] for column in parts))
        for rows in (slice(0, len(locations)), slice(len(locations), None))
    )
    return WallTime(locations, begin, end, of_ranks, spans, of_spans)


def _caused(
    data: StepData, names: NameTable, locations: Locations, account: Account, spans: PhaseSpans,
    lives: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """What causes_of() finds, where some rank did not call MPI. cost: a pass over all calls."""
    if int(account.operations.main.sum()) == len(locations):
        causes, lines = causes_of(account.operations, lives, spans), [*account.lines]
        for strand in np.flatnonzero(account.operations.thread < 0).tolist():
            location = int(account.operations.location_of_strand[strand])
            lines[strand] = _main_line(data, locations, location)
    else:
        every = np.arange(len(locations))
        asked = np.r_[every, spans.location]
        causes = Causes(len(locations), (np.empty(0, np.int64),) * 4, (np.r_[asked, asked],
            np.r_[lives[:, 0], spans.begin_ns, lives[:, 1], spans.end_ns]))
        lines = [_main_line(data, locations, one) for one in every.tolist()]
    pieces = [(line, causes.points(strand)) for strand, line in enumerate(lines)]
    for strand, states in enumerate(answers_of(_line_states, data, names, pieces)):
        causes.give(strand, strand + 1, states)
    return causes.run()


def _main_line(data: StepData, locations: Locations, location: int) -> LineOf:
    return line_of(data, (int(locations.speaker[location]), locations.members[location]))


def _line_states(data: StepData, names: NameTable, line: LineOf, at_ns: np.ndarray) -> np.ndarray:
    return lengths_of(data, line, at_ns, IO, CALLS, ALL_IO, ALL_CALLS)


def _parts(low: np.ndarray, high: np.ndarray, length_ns: np.ndarray) -> tuple[np.ndarray, ...]:
    """Columns of Parts, of windows. low, high: their begins and ends (_abi.CAUSED)."""

    def within(name: str) -> np.ndarray:
        return high[name] - low[name]

    io, calls = within("io_ns"), within("calls_ns")
    in_mpi = calls - io
    io_wait = np.clip(within("io_wait_ns"), 0, in_mpi)
    imbalance = np.clip(within("imbalance_ns"), 0, in_mpi - io_wait)
    background = within("all_calls_ns") - calls
    communication = in_mpi - io_wait - imbalance
    return length_ns - calls, io, io_wait, imbalance, communication, background
