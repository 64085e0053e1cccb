# SPDX-License-Identifier: Apache-2.0
"""Collectives matched over ranks: who came when, who came last, and who waited for whom.

An instance is one collective on one communicator; its ranks meet by the communicator's name and the
sequence number of the call (docs/formats/trace.md, section 3.7). What a rank does not wait for is
not counted: it leaves some collectives before others come.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from weir.analysis.columns import starts
from weir.analysis.names import NO_NAME, NameTable
from weir.report.waits.locations import Locations
from weir.report.waits.records import Records, silent_ops

PREFIX = "mpi:"
# Nobody leaves these before all have come. From others (a broadcast, a reduction) some do: there,
# who has left did not wait for who comes later.
_MEETINGS = {
    "Barrier", "Allreduce", "Allgather", "Allgatherv", "Alltoall", "Alltoallv", "Alltoallw",
    "Reduce_scatter", "Reduce_scatter_block",
    "Comm_dup", "Comm_dup_with_info", "Comm_split", "Comm_split_type", "Comm_create", "Cart_create",
    "Cart_sub", "Win_fence", "Finalize",
}  # fmt: skip


@dataclass(frozen=True)
class Communicators:
    """of_record: the communicator of each record, -1 none that is known to all its ranks; is_alone:
    whether each record's has one rank. Arrays by communicator: its name, its size."""

    of_record: np.ndarray
    is_alone: np.ndarray
    name: np.ndarray
    size: np.ndarray


def communicators(records: Records, program: np.ndarray, names: NameTable) -> Communicators:
    """program: of each record. Communicators of different programs are different ones; those of one
    rank are none."""
    known = np.unique(records.name[records.name != NO_NAME])
    # by name; the last for no name
    sizes = np.zeros(int(known[-1]) + 2 if len(known) else 1, np.int64)
    for number in known.tolist():
        sizes[number] = _size(names[number])
    of_name = np.where(records.name == NO_NAME, len(sizes) - 1, records.name)
    kept = (sizes[of_name] > 1) & (program >= 0)
    keys = program * len(sizes) + of_name
    found, at = np.unique(keys[kept], return_inverse=True)
    of_record = np.full(len(records), -1, np.int64)
    of_record[kept] = at
    return Communicators(of_record, sizes[of_name] == 1, found % len(sizes),
        sizes[found % len(sizes)])


def _size(name: str) -> int:
    """Of the communicator `mpi:identity:size`; 0 when it is none or known to one rank alone."""
    if not name.startswith(PREFIX) or name.startswith(PREFIX + "?"):
        return 0
    size = name.rpartition(":")[2]
    return int(size) if size.isdigit() and len(size) < 10 else 0


@dataclass(frozen=True)
class Instances:
    """Whole instances, in the order of their last arrival. Arrays by instance:

    comm, routine; first_ns, last_ns: first and last arrival; critical: the rank that was waited for
    longest (the last to arrive, but where ranks leave before), arrival_ns of it; is_meeting:
    whether nobody leaves before all have come; keys: communicator and sequence, sorted by `by_key`.

    Arrays by arrival, those of one instance together: instance, rank, start_ns, end_ns,
    is_blocking, awaited (the rank that it waited for, itself when for none). incomplete: instances
    of which ranks are missing (killed, or their records lost), which are left out.
    """

    comm: np.ndarray
    routine: np.ndarray
    first_ns: np.ndarray
    last_ns: np.ndarray
    critical: np.ndarray
    arrival_ns: np.ndarray
    is_meeting: np.ndarray
    keys: np.ndarray
    instance: np.ndarray
    location: np.ndarray
    start_ns: np.ndarray
    end_ns: np.ndarray
    is_blocking: np.ndarray
    awaited: np.ndarray
    awaited_ns: np.ndarray
    incomplete: int

    def __len__(self) -> int:
        return len(self.comm)

    def find(self, comms: np.ndarray, sequences: np.ndarray) -> np.ndarray:
        """The instance of each communicator and sequence, -1 where there is none."""
        if not len(self):
            return np.full(len(comms), -1, np.int64)
        order = np.argsort(self.keys)
        sorted_keys, sought = self.keys[order], instance_keys(comms, sequences)
        at = np.minimum(np.searchsorted(sorted_keys, sought), len(sorted_keys) - 1)
        return np.where((sorted_keys[at] == sought) & (comms >= 0), order[at], -1)


def instance_keys(comms: np.ndarray, sequences: np.ndarray) -> np.ndarray:
    """One number for a communicator and a sequence number (of which 40 bits are kept)."""
    return comms.astype(np.int64) << 40 | sequences & (1 << 40) - 1


@dataclass(frozen=True)
class Arrivals:
    """Locations that come to collectives. sequence: number of the collective on its communicator.
    """

    comm: np.ndarray
    location: np.ndarray
    sequence: np.ndarray
    start_ns: np.ndarray
    end_ns: np.ndarray
    routine: np.ndarray
    is_blocking: np.ndarray

    @staticmethod
    def none() -> Arrivals:
        return Arrivals(*(np.empty(0, np.int64),) * 6, np.empty(0, bool))

    def joined(self, others: Arrivals) -> Arrivals:
        return Arrivals(*(np.concatenate([getattr(self, field.name), getattr(others, field.name)])
            for field in fields(self)))


def arrivals_of(records: Records, comms: Communicators, locations: Locations) -> Arrivals:
    """records: all of MPI."""
    is_start = records.op == silent_ops().get("MPI_start_collective", -1)
    is_collective = (records.op == silent_ops().get("MPI_collective", -1)) | is_start
    kept = is_collective & (comms.of_record >= 0) & (records.offset >= 0)
    return Arrivals(
        comms.of_record[kept], locations.of_member[records.member[kept]], records.offset[kept],
        records.start[kept], records.end[kept],
        records.size[kept] >> 32, ~is_start[kept],
    )  # fmt: skip


def instances_of(arrivals: Arrivals, sizes: np.ndarray, meets: np.ndarray,
        incomplete_to: int) -> Instances:
    """sizes: of communicators; meets: whether each routine is one that nobody leaves before all
    have come. Instances without all of their ranks are left out, and counted on communicators below
    `incomplete_to`."""
    key = instance_keys(arrivals.comm, arrivals.sequence)
    order = np.lexsort((arrivals.start_ns, key))
    key = key[order]
    begins = starts(key) if len(key) else np.empty(0, np.int64)
    counts = np.diff(np.r_[begins, len(key)])
    comm = arrivals.comm[order]
    is_whole = (counts == sizes[comm[begins]]) & ~_has_twins(arrivals.location[order], begins,
        counts)
    order, key = order[np.repeat(is_whole, counts)], key[np.repeat(is_whole, counts)]
    rows = (
        arrivals.comm[order], arrivals.location[order], key, arrivals.start_ns[order],
        arrivals.end_ns[order], arrivals.routine[order],
        arrivals.is_blocking[order],
    )  # fmt: skip
    return _made(rows, counts[is_whole], meets,
        int((~is_whole & (comm[begins] < incomplete_to)).sum()))


def _has_twins(location: np.ndarray, begins: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Whether a rank arrived twice: the records are not what they say."""
    instance = np.repeat(np.arange(len(begins)), counts)
    order = np.lexsort((location, instance))
    twins = (np.diff(location[order]) == 0) & (np.diff(instance[order]) == 0)
    found = np.zeros(len(begins), bool)
    found[instance[order][1:][twins]] = True
    return found


def _made(rows: tuple[np.ndarray, ...], counts: np.ndarray, meets: np.ndarray,
        incomplete: int) -> Instances:
    comm, location, key, start, end, routine, is_blocking = rows
    ends = np.cumsum(counts)
    begins = ends - counts
    instance = np.repeat(np.arange(len(counts)), counts)
    is_left_early = ~meets[np.minimum(routine, len(meets) - 1)] & is_blocking
    last = ends[instance] - 1  # rows of an instance are in the order of arrival
    awaited_row = np.where(is_left_early, _last_before_leaving(instance, start, end), last)
    awaited, awaited_ns = location[awaited_row], start[awaited_row]
    # The rank for which others waited longest: of a full collective always the last.
    waits = np.where(is_blocking, awaited_ns - start, 0)
    blamed = np.bincount(awaited_row, waits, len(location)).astype(np.float64)
    blamed[last] += 0.5  # it is the last when nobody waited
    order = np.lexsort((blamed, instance))
    critical = order[ends - 1] if len(ends) else ends
    by_time = np.argsort(start[ends - 1], kind="stable") if len(ends) else ends
    place = np.empty(len(counts), np.int64)
    place[by_time] = np.arange(len(counts))
    at = begins[by_time]
    return Instances(
        comm=comm[at], routine=routine[at], first_ns=start[at], last_ns=start[ends - 1][by_time],
        critical=location[critical][by_time],
        arrival_ns=start[critical][by_time],
        is_meeting=meets[np.minimum(routine[at], len(meets) - 1)] & is_blocking[at],
        keys=key[at], instance=place[instance], location=location, start_ns=start, end_ns=end,
        is_blocking=is_blocking, awaited=awaited, awaited_ns=awaited_ns, incomplete=incomplete,
    )  # fmt: skip


def _last_before_leaving(instance: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """For each row the row of its instance that arrived last before this one left."""
    count = len(start)
    times, kind = np.r_[start, end], np.repeat(np.array([0, 1], np.int8), count)
    order = np.lexsort((kind, times, np.r_[instance, instance]))
    is_arrival = order < count
    latest = np.maximum.accumulate(np.where(is_arrival, np.arange(2 * count), -1))
    found = np.empty(count, np.int64)
    found[order[~is_arrival] - count] = order[latest[~is_arrival]]
    return found


def meeting_routines(names: dict[int, str]) -> np.ndarray:
    """By number, for instances_of. names: of routines by number."""
    table = np.zeros(max(names, default=0) + 2, bool)
    for value, name in names.items():
        table[value] = name.removeprefix("MPI_") in _MEETINGS
    return table
