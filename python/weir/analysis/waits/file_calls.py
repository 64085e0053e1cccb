# SPDX-License-Identifier: Apache-2.0
"""Collective calls of MPI-IO as collectives in which tasks wait for those that move the data.

In MPI_File_write_all a few tasks write and the others wait within the call. A task has come when its own I/O within the call is done (at the call's
beginning, if it has none); who leaves before others have come did not wait for them. Calls of one file are matched by their order in each task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from weir.analysis.columns import starts
from weir.analysis.names import NO_NAME
from weir.analysis.waits.instances import Arrivals, Communicators
from weir.analysis.waits.busy import Busy
from weir.analysis.waits.records import Records, silent_ops
from weir.analysis.waits.tasks import Tasks

_PREFIX = "MPI_File_"
_OTHERS = ("open", "close", "set_size", "preallocate", "sync", "set_view")
_FIRST = 1 << 16  # numbers of these routines: above those of MPI's own


def file_calls() -> tuple[str, ...]:
    """Names of the operations that all tasks of a file's communicator make together and that end when they return."""
    return tuple(name for name in silent_ops() if _is_collective(name.removeprefix(_PREFIX)) and name.startswith(_PREFIX))


def _is_collective(word: str) -> bool:
    parts = word.split("_")
    return word in _OTHERS or (not word.startswith("i") and ("all" in parts or "ordered" in parts))


def routines_of_files() -> dict[int, str]:
    """Names by the numbers that arrivals have as their routine."""
    return {_FIRST | silent_ops()[name]: name for name in file_calls()}


def file_arrivals(records: Records, tasks: Tasks, comms: Communicators, busy_of: Callable[[Sequence[tuple[int, np.ndarray]]], list[Busy]]) -> tuple[Communicators, Arrivals]:
    """Arrivals in file calls, and the communicators with one more for each file of several tasks, whose name is the file's.

    busy_of: the I/O of tasks, of each at its instants.
    """
    records = records.of(*file_calls())
    task = tasks.of_member[records.member]
    kept = (task >= 0) & (records.name != NO_NAME)
    records, task = records.where(kept), task[kept]
    if not len(records):
        return comms, Arrivals.none()
    stride = int(records.name.max()) + 1
    keys, comm = np.unique(tasks.program[task] * stride + records.name, return_inverse=True)
    sizes = np.bincount(np.unique(comm * len(tasks) + task) // len(tasks), minlength=len(keys))
    order = np.lexsort((records.start, task, comm))
    order = order[sizes[comm[order]] > 1]
    comm, task, records = comm[order], task[order], records.where(order)
    if not len(records):
        return comms, Arrivals.none()
    begins = starts(comm, task)
    nth = np.arange(len(comm)) - np.repeat(begins, np.diff(np.r_[begins, len(comm)]))
    start = records.start.copy()
    by_task = [(one, np.flatnonzero(task == one)) for one in np.unique(task).tolist()]
    for (_, rows), busy in zip(by_task, busy_of([(one, records.end[rows]) for one, rows in by_task])):
        start[rows] = np.clip(busy.last_end(records.end[rows]), start[rows], records.end[rows])
    first = len(comms.size)
    routine = _FIRST | records.op.astype(np.int64)
    arrivals = Arrivals(first + comm, task, nth, start, records.end, routine, np.ones(len(comm), bool))
    more = Communicators(comms.of_record, np.r_[comms.name, keys % stride], np.r_[comms.size, sizes])
    return more, arrivals
