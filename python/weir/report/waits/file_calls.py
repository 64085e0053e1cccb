# SPDX-License-Identifier: Apache-2.0
"""Collective calls of MPI-IO as collectives in which ranks wait for those that move the data.

In MPI_File_write_all a few ranks write and the others wait within the call. A rank has come when its own I/O within the call is done (at the call's
beginning, if it has none); who leaves before others have come did not wait for them. Calls of one file are matched by their order in each rank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from weir.analysis.columns import starts
from weir.analysis.names import NO_NAME
from weir.report.waits.busy import Busy
from weir.report.waits.instances import Arrivals, Communicators
from weir.report.waits.locations import Locations
from weir.report.waits.records import Records, silent_ops

_PREFIX = "MPI_File_"
_OTHERS = ("open", "close", "set_size", "preallocate", "sync", "set_view")
_FIRST = 1 << 16  # numbers of these routines: above those of MPI's own


def file_calls() -> tuple[str, ...]:
    """Names of the operations that all ranks of a file's communicator make together and that end when they return."""
    return tuple(name for name in silent_ops() if _is_collective(name.removeprefix(_PREFIX)) and name.startswith(_PREFIX))


def _is_collective(word: str) -> bool:
    parts = word.split("_")
    return word in _OTHERS or (not word.startswith("i") and ("all" in parts or "ordered" in parts))


def routines_of_files() -> dict[int, str]:
    """Names by the numbers that arrivals have as their routine."""
    return {_FIRST | silent_ops()[name]: name for name in file_calls()}


def file_arrivals(records: Records, locations: Locations, comms: Communicators, busy_of: Callable[[Sequence[tuple[int, np.ndarray]]], list[Busy]]) -> tuple[Communicators, Arrivals]:
    """Arrivals in file calls, and the communicators with one more for each file of several ranks, whose name is the file's.

    busy_of: the I/O of ranks, of each at its timestamps.
    """
    records = records.of(*file_calls())
    location = locations.of_member[records.member]
    kept = (location >= 0) & (records.name != NO_NAME)
    records, location = records.where(kept), location[kept]
    if not len(records):
        return comms, Arrivals.none()
    stride = int(records.name.max()) + 1
    keys, comm = np.unique(locations.program[location] * stride + records.name, return_inverse=True)
    sizes = np.bincount(np.unique(comm * len(locations) + location) // len(locations), minlength=len(keys))
    order = np.lexsort((records.start, location, comm))
    order = order[sizes[comm[order]] > 1]
    comm, location, records = comm[order], location[order], records.where(order)
    if not len(records):
        return comms, Arrivals.none()
    begins = starts(comm, location)
    nth = np.arange(len(comm)) - np.repeat(begins, np.diff(np.r_[begins, len(comm)]))
    start = records.start.copy()
    by_location = [(one, np.flatnonzero(location == one)) for one in np.unique(location).tolist()]
    for (_, rows), busy in zip(by_location, busy_of([(one, records.end[rows]) for one, rows in by_location])):
        start[rows] = np.clip(busy.last_end(records.end[rows]), start[rows], records.end[rows])
    first = len(comms.size)
    routine = _FIRST | records.op.astype(np.int64)
    arrivals = Arrivals(first + comm, location, nth, start, records.end, routine, np.ones(len(comm), bool))
    more = Communicators(comms.of_record, np.r_[comms.name, keys % stride], np.r_[comms.size, sizes])
    return more, arrivals
