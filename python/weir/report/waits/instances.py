# SPDX-License-Identifier: Apache-2.0
"""Collectives matched over ranks: who came when, who came last, and who waited for whom.

An instance is one collective on one communicator; its ranks meet by the communicator's name and the
sequence number of the call (docs/formats/trace.md, section 3.7). What a rank does not wait for is
not counted: it leaves some collectives before others come.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np

from weir.analysis.columns import numbered, order_of, starts
from weir.analysis.names import NO_NAME, NameTable
from weir.report.waits.locations import Locations
from weir.report.waits.records import Records, silent_ops

PREFIX = "mpi:"
ARRIVALS_AT_ONCE = 1 << 16  # as far as instances are smaller: what is made on the way needs memory
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

    def without_records(self) -> Communicators:
        nothing = np.empty(0, np.int32)
        return Communicators(nothing, nothing, self.name, self.size)


def communicators(records: Records, program: np.ndarray, names: NameTable) -> Communicators:
    """program: of each record. Communicators of different programs are different ones; those of one
    rank are none."""
    known, _ = numbered(records.name[records.name != NO_NAME])
    # by name; the last for no name
    sizes = np.zeros(int(known[-1]) + 2 if len(known) else 1, np.int64)
    for number in known.tolist():
        sizes[number] = _size(names[number])
    of_name = np.where(records.name == NO_NAME, len(sizes) - 1, records.name)
    kept = (sizes[of_name] > 1) & (program >= 0)
    found, at = numbered(program[kept].astype(np.int64) * len(sizes) + of_name[kept])
    of_record = np.full(len(records), -1, np.int32)
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

    def without_arrivals(self) -> Instances:
        nothing = np.empty(0, np.int64)
        return replace(self, **dict.fromkeys(("instance", "location", "start_ns", "end_ns",
            "is_blocking", "awaited", "awaited_ns"), nothing))

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
        kinds = dict(sequence=np.int64, start_ns=np.int64, end_ns=np.int64, is_blocking=bool)
        return Arrivals(*(np.empty(0, kinds.get(field.name, np.int32))
            for field in fields(Arrivals)))

    def joined(self, others: Arrivals) -> Arrivals:
        if not len(others.comm):
            return self
        return Arrivals(*(np.concatenate([getattr(self, field.name), getattr(others, field.name)])
            for field in fields(self)))


def arrivals_of(records: Records, comms: Communicators, locations: Locations) -> Arrivals:
    """records: all of MPI."""
    is_start = records.op == silent_ops().get("MPI_start_collective", -1)
    is_collective = (records.op == silent_ops().get("MPI_collective", -1)) | is_start
    kept = is_collective & (comms.of_record >= 0) & (records.offset >= 0)
    return Arrivals(
        comms.of_record[kept], locations.of_member[records.member[kept]].astype(np.int32),
        records.offset[kept], records.start[kept], records.end[kept],
        (records.size[kept] >> 32).astype(np.int32), ~is_start[kept],
    )  # fmt: skip


def instances_of(arrivals: Arrivals, sizes: np.ndarray, meets: np.ndarray,
        incomplete_to: int) -> Instances:
    """sizes: of communicators; meets: whether each routine is one that nobody leaves before all
    have come. Instances without all of their ranks are left out, and counted on communicators below
    `incomplete_to`."""
    key = instance_keys(arrivals.comm, arrivals.sequence)
    order = order_of(key, arrivals.start_ns).astype(np.int32)
    key = key[order]
    begins = starts(key) if len(key) else np.empty(0, np.int64)
    key = key[begins]
    counts = np.diff(np.r_[begins, len(order)])
    comm = arrivals.comm[order[begins]]
    is_whole = (counts == sizes[comm]) & ~_has_twins(arrivals.location[order], counts)
    if not is_whole.all():
        order = order[np.repeat(is_whole, counts)]
    rows = (arrivals.location[order], arrivals.start_ns[order], arrivals.end_ns[order],
        arrivals.routine[order], arrivals.is_blocking[order])
    of = comm[is_whole], key[is_whole], counts[is_whole]
    return _made(rows, of, meets, int((~is_whole & (comm < incomplete_to)).sum()))


def _has_twins(location: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Whether a rank arrived twice: the records are not what they say."""
    instance = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    order = order_of(instance, location).astype(np.int32)
    location, instance = location[order], instance[order]
    found = np.zeros(len(counts), bool)
    found[instance[1:][(location[1:] == location[:-1]) & (instance[1:] == instance[:-1])]] = True
    return found


def _made(rows: tuple[np.ndarray, ...], of: tuple[np.ndarray, ...], meets: np.ndarray,
        incomplete: int) -> Instances:
    """rows: by arrival, those of an instance together, in the order of arrival; of: by instance its
    communicator, key and number of arrivals."""
    location, start, end, routine, is_blocking = rows
    comm, key, counts = of
    ends = np.cumsum(counts)
    begins = ends - counts
    awaited, awaited_ns = np.empty_like(location), np.empty_like(start)
    critical = np.empty(len(counts), np.int64)
    for low, high in _batches(ends):
        at = slice(int(begins[low]), int(ends[high - 1]))
        meets_all = meets[np.minimum(routine[at], len(meets) - 1)]
        row, critical[low:high] = _awaited_rows(start[at], end[at], is_blocking[at], ~meets_all,
            counts[low:high])
        critical[low:high] += at.start
        awaited[at], awaited_ns[at] = location[at][row], start[at][row]
    by_time = np.argsort(start[ends - 1], kind="stable") if len(ends) else ends
    place = np.empty(len(counts), np.int32)
    place[by_time] = np.arange(len(counts))
    at, critical = begins[by_time], critical[by_time]
    return Instances(
        comm=comm[by_time], routine=routine[at],
        first_ns=start[at], last_ns=start[ends - 1][by_time],
        critical=location[critical], arrival_ns=start[critical],
        is_meeting=meets[np.minimum(routine[at], len(meets) - 1)] & is_blocking[at],
        keys=key[by_time], instance=np.repeat(place, counts), location=location, start_ns=start,
        end_ns=end, is_blocking=is_blocking, awaited=awaited, awaited_ns=awaited_ns,
        incomplete=incomplete,
    )  # fmt: skip


def _batches(ends: np.ndarray) -> Iterator[tuple[int, int]]:
    """First instance and that behind the last one, of about ARRIVALS_AT_ONCE. ends: where the
    arrivals of each end."""
    low = 0
    while low < len(ends):
        done = int(ends[low - 1]) if low else 0
        high = max(int(np.searchsorted(ends, done + ARRIVALS_AT_ONCE, "right")), low + 1)
        yield low, high
        low = high


def _awaited_rows(
    start: np.ndarray, end: np.ndarray, is_blocking: np.ndarray, may_leave: np.ndarray,
    counts: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """For each arrival of some instances the row for which it waited, and by instance the row for
    which others waited longest."""
    ends = np.cumsum(counts)
    instance = np.repeat(np.arange(len(counts)), counts)
    last = ends[instance] - 1
    is_left_early = may_leave & is_blocking
    row = last
    if is_left_early.any():
        row = np.where(is_left_early, _last_before_leaving(instance, start, end), last)
    # The rank for which others waited longest: of a full collective always the last.
    waits = np.where(is_blocking, start[row] - start, 0)
    blamed = np.bincount(row, waits, len(start)).astype(np.float64)
    blamed[last] += 0.5  # it is the last when nobody waited
    return row, np.lexsort((blamed, instance))[ends - 1]


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
