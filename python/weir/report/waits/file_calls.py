# SPDX-License-Identifier: Apache-2.0
"""Collective calls of MPI-IO as collectives in which ranks wait for those that move the data.

In MPI_File_write_all a few ranks write and the others wait within the call. A rank has come when
its own I/O within the call is done (at the call's beginning, if it has none); who leaves before
others have come did not wait for them. Calls of one file are matched by their order in each rank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from weir.analysis.columns import starts
from weir.analysis.names import NO_NAME
from weir.report.waits.busy import Busy
from weir.report.waits.instances import Arrivals, Communicators
from weir.report.waits.locations import Locations
from weir.report.waits.records import Records, rows_of, silent_ops

_PREFIX = "MPI_File_"
_OTHERS = ("open", "close", "set_size", "preallocate", "sync", "set_view")
_FIRST = 1 << 16  # numbers of these routines: above those of MPI's own


@dataclass(frozen=True)
class FileCalls:
    """Arrays by rank in such a call. comm, sequence: of the arrival. entered_ns: until when the
    rank waited for the others to come before it did its I/O; arrival_ns: where that ends. Without
    I/O both are called_ns."""

    comm: np.ndarray
    sequence: np.ndarray
    location: np.ndarray
    called_ns: np.ndarray
    entered_ns: np.ndarray
    arrival_ns: np.ndarray
    end_ns: np.ndarray
    routine: np.ndarray

    @staticmethod
    def none() -> FileCalls:
        return FileCalls(*(np.empty(0, np.int64) for _ in fields(FileCalls)))

    def where(self, mask: np.ndarray) -> FileCalls:
        return rows_of(self, mask)


def file_calls() -> tuple[str, ...]:
    """Names of the operations that all ranks of a file's communicator make together and that end
    when they return."""
    return tuple(name for name in silent_ops() if _is_collective(name.removeprefix(_PREFIX))
        and name.startswith(_PREFIX))


def _is_collective(word: str) -> bool:
    parts = word.split("_")
    return word in _OTHERS or (not word.startswith("i") and ("all" in parts or "ordered" in parts))


def routines_of_files() -> dict[int, str]:
    """Names by the numbers that arrivals have as their routine."""
    return {_FIRST | silent_ops()[name]: name for name in file_calls()}


def file_arrivals(
    records: Records, locations: Locations, comms: Communicators,
    busy_of: Callable[[Sequence[tuple[int, np.ndarray]]], list[Busy]],
) -> tuple[Communicators, Arrivals, FileCalls]:  # fmt: skip
    """Arrivals in file calls, and the communicators with one more for each file of several ranks,
    whose name is the file's.

    busy_of: the I/O of ranks, of each at its timestamps.
    """
    records = records.of(*file_calls())
    location = locations.of_member[records.member]
    kept = (location >= 0) & (records.name != NO_NAME)
    records, location = records.where(kept), location[kept]
    if not len(records):
        return comms, Arrivals.none(), FileCalls.none()
    stride = int(records.name.max()) + 1
    keys, comm = np.unique(locations.program[location] * stride + records.name, return_inverse=True)
    sizes = np.bincount(np.unique(comm * len(locations) + location) // len(locations),
        minlength=len(keys))
    order = np.lexsort((records.start, location, comm))
    order = order[sizes[comm[order]] > 1]
    comm, location, records = comm[order], location[order], records.where(order)
    if not len(records):
        return comms, Arrivals.none(), FileCalls.none()
    begins = starts(comm, location)
    nth = np.arange(len(comm)) - np.repeat(begins, np.diff(np.r_[begins, len(comm)]))
    called, start, entered = records.start, records.start.copy(), records.start.copy()
    last = _last_called(comm, nth, called, records.end)
    by_location = [(one, np.flatnonzero(location == one)) for one in np.unique(location).tolist()]
    asked = [(one, records.end[rows], called[rows], last[rows]) for one, rows in by_location]
    for (_, rows), busy in zip(by_location, busy_of(asked)):
        start[rows] = np.clip(busy.last_end(records.end[rows]), start[rows], records.end[rows])
        before = np.minimum(last[rows], start[rows])
        has_waited = (last[rows] <= start[rows]) & (busy.within(called[rows], last[rows]) == 0)
        entered[rows] = np.where(has_waited, before, called[rows])
    first = len(comms.size)
    routine = _FIRST | records.op.astype(np.int64)
    is_blocking = np.ones(len(comm), bool)
    arrivals = Arrivals((first + comm).astype(np.int32), location.astype(np.int32), nth, start,
        records.end, routine.astype(np.int32), is_blocking)
    calls = FileCalls(first + comm, nth, location, called, entered, start, records.end, routine)
    names, sizes = np.r_[comms.name, keys % stride], np.r_[comms.size, sizes]
    return Communicators(comms.of_record, comms.is_alone, names, sizes), arrivals, calls


def _last_called(
    comm: np.ndarray, nth: np.ndarray, called: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """When the last rank came to each call, for each rank; not behind the end of its own call."""
    _, call = np.unique(comm << 40 | nth, return_inverse=True)
    last = np.full(int(call.max()) + 1, np.iinfo(np.int64).min)
    np.maximum.at(last, call, called)
    return np.clip(last[call], called, end)
