# SPDX-License-Identifier: Apache-2.0
"""Waits: which rank waited from when to when for which other one, in collectives and for messages.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from weir.analysis.columns import order_of, starts
from weir.report.waits.instances import Arrivals, Communicators, Instances
from weir.report.waits.locations import Locations
from weir.report.waits.records import Records, rows_of, silent_ops
from weir.trace.ops import NESTED

# what a wait completed, in the upper half of an MPI_awaited record's size
RECEIVED, COLLECTIVE, SENT = 1, 2, 3
_MESSAGES = ("MPI_receive", "MPI_probe", "MPI_send")
_SYNCHRONISING = ("MPI_wait", *_MESSAGES)


class Awaited(NamedTuple):
    """For each record what was awaited (0 unless it tells of one thing that a wait completed), the
    routine, and the wait that it belongs to, as owners() has it."""

    kind: np.ndarray
    routine: np.ndarray
    owner: np.ndarray


@dataclass(frozen=True)
class Waits:
    """Arrays by wait. rank waited from begin_ns to until_ns for `awaited`; instance: of a
    collective, -1 for messages; name: of the communicator; routine: of the call. group: waits with
    one number are one call that waited for several ranks at once. Times of 64 bits, all else of 32:
    there are as many as calls of MPI."""

    location: np.ndarray
    begin_ns: np.ndarray
    until_ns: np.ndarray
    awaited: np.ndarray
    instance: np.ndarray
    name: np.ndarray
    routine: np.ndarray
    group: np.ndarray

    def __len__(self) -> int:
        return len(self.location)

    def where(self, mask: np.ndarray) -> Waits:
        return rows_of(self, mask)


def waits_of(records: Records, awaited: Awaited, comms: Communicators, locations: Locations,
        instances: Instances, met: np.ndarray) -> Waits:
    """All waits whose awaited rank is known, waits of no length included for what is awaited in a
    collective that does not block. met: as met_in_waits() tells."""
    parts = [_blocking(instances, comms, met)]
    location = locations.of_member.astype(np.int32)[records.member]
    ops = silent_ops()
    kind, routine = awaited.kind, awaited.routine
    of_collective = np.flatnonzero(kind == COLLECTIVE)
    parts.append(_collective(records, comms, instances, of_collective, location, routine, met))
    is_message = np.isin(records.op, [ops[name] for name in _MESSAGES if name in ops]) & (
        (records.flags & NESTED) == 0)
    of_message = np.flatnonzero((is_message | (kind == RECEIVED) | (kind == SENT))
        & (records.offset >= 0))
    parts.append(_messages(records, locations, of_message, location, routine))
    columns = {field.name: [getattr(one, field.name) for one in parts] for field in fields(Waits)}
    del parts
    # one column of them all is there twice, not all columns
    return _grouped(Waits(**{name: _joined(columns.pop(name), name) for name in [*columns]}))


def _joined(parts: list[np.ndarray], name: str) -> np.ndarray:
    is_time = name in ("begin_ns", "until_ns", "group")
    return np.concatenate(parts, dtype=np.int64 if is_time else np.int32, casting="same_kind")


def completions_of(records: Records, awaited: Awaited, comms: Communicators,
        locations: Locations) -> Arrivals:
    """When ranks waited for collectives that they had begun before, and in which routine."""
    kind, routine = awaited.kind, awaited.routine
    at = np.flatnonzero((kind == COLLECTIVE) & (comms.of_record >= 0) & (records.offset >= 0))
    return Arrivals(
        comms.of_record[at], locations.of_member[records.member[at]].astype(np.int32),
        records.offset[at], records.start[at], records.end[at], routine[at].astype(np.int32),
        np.ones(len(at), bool),
    )  # fmt: skip


def awaited_in(records: Records) -> Awaited:
    ops = silent_ops()
    nested = records.op == ops.get("MPI_awaited", -1)
    routine = (records.size >> 32).astype(np.uint16)  # it has 16 bits
    owner = owners(records)
    of_wait = np.where(owner >= 0, routine[owner], np.uint16(0)) if len(records) else routine
    return Awaited(np.where(nested, routine, np.uint16(0)), np.where(nested, of_wait, routine),
        owner)


def met_in_waits(records: Records, comms: Communicators, instances: Instances) -> np.ndarray:
    """By instance: whether it was begun without blocking, and is a meeting in the waits for it all
    the same (completion.py)."""
    met, begun = np.zeros(len(instances), bool), np.zeros(len(instances), bool)
    started = np.flatnonzero(records.op == silent_ops().get("MPI_start_collective", -1))
    of = instances.find(comms.of_record[started], records.offset[started])
    begun[of[of >= 0]] = True
    met[instances.instance[instances.is_blocking]] = True
    return met & begun


def _blocking(instances: Instances, comms: Communicators, met: np.ndarray) -> Waits:
    rows = np.flatnonzero(instances.is_blocking & (instances.awaited != instances.location)
        & (instances.awaited_ns > instances.start_ns))
    of = instances.instance[rows]
    # one call may wait for several collectives that were begun before
    group = np.where(met[of], instances.start_ns[rows], -1)
    return Waits(
        instances.location[rows], instances.start_ns[rows], instances.awaited_ns[rows],
        instances.awaited[rows], of,
        comms.name[instances.comm[of]], instances.routine[of], group,
    )  # fmt: skip


def _collective(
    records: Records, comms: Communicators, instances: Instances, at: np.ndarray,
    location: np.ndarray, routine: np.ndarray, met: np.ndarray
) -> Waits:
    of = instances.find(comms.of_record[at], records.offset[at])
    kept = of >= 0
    kept[kept] = ~met[of[kept]]
    at, of = at[kept], of[kept]
    until = np.clip(instances.last_ns[of], records.start[at], records.end[at])
    return Waits(
        location[at], records.start[at], until, instances.critical[of], of,
        comms.name[instances.comm[of]], routine[at],
        records.start[at],
    )  # fmt: skip


def _messages(records: Records, locations: Locations, at: np.ndarray, location: np.ndarray,
        routine: np.ndarray) -> Waits:
    known = location[at] >= 0
    at = at[known]
    peer = locations.at(locations.program[location[at]], records.offset[at])
    several = several_threads(location[at], records.thread[at], len(locations))
    known = (peer >= 0) & ((peer != location[at]) | several[location[at]])
    at, peer = at[known], peer[known]
    return Waits(
        location[at], records.start[at], records.end[at], peer.astype(np.int32),
        np.full(len(at), -1, np.int32), records.name[at], routine[at],
        records.start[at],
    )  # fmt: skip


def several_threads(location: np.ndarray, thread: np.ndarray, locations: int) -> np.ndarray:
    """By rank whether several of its threads are there."""
    some_thread, found = np.zeros(locations, thread.dtype), np.zeros(locations, bool)
    some_thread[location] = thread
    found[location[thread != some_thread[location]]] = True
    return found


def _grouped(waits: Waits) -> Waits:
    """Group numbers: one for each call. Blocking collectives have none in common."""
    if not len(waits):
        return waits
    order = order_of(waits.location, waits.group).astype(np.int32)
    sorted_groups = waits.group[order]
    begins = sorted_groups < 0
    begins[starts(waits.location[order], sorted_groups)] = True
    del sorted_groups
    group = np.empty(len(waits), np.int32)
    group[order] = np.cumsum(begins, dtype=np.int32) - np.int32(1)
    return Waits(**{field.name: getattr(waits, field.name)
        for field in fields(waits)} | {"group": group})


def owners(records: Records) -> np.ndarray:
    """For each awaited record the wait, or the MPI_Sendrecv, of the same process and start; -1 when
    its record is lost, and for other records."""
    ops = silent_ops()
    nested = records.op == ops.get("MPI_awaited", -1)
    calls = np.isin(records.op, [ops[name] for name in ("MPI_wait", "MPI_receive") if name in ops])
    at = np.flatnonzero(nested | calls)
    found = np.full(len(records), -1, np.int32)
    if not len(at):
        return found
    at = at.astype(np.int32)
    order = at[np.lexsort((nested[at], records.start[at], records.member[at]))]
    is_wait = ~nested[order]
    place = np.maximum.accumulate(np.where(is_wait, np.arange(len(order), dtype=np.int32),
        np.int32(-1)))
    owner = order[np.maximum(place, 0)]
    fits = (place >= 0) & (records.start[owner] == records.start[order]) & (records.member[owner]
        == records.member[order])
    found[order] = np.where(fits & ~is_wait, owner, np.int32(-1))
    return found


def waiting_ns(records: Records, instances: Instances, met: np.ndarray) -> int:
    """Time that ranks spent waiting: in collectives until the awaited rank came, in all of
    receives, probes, sends and waits."""
    is_call = np.isin(records.op, [silent_ops()[name] for name in _SYNCHRONISING
        if name in silent_ops()]) & ((records.flags & NESTED) == 0)
    is_blocking = instances.is_blocking & ~met[instances.instance]
    in_collectives = np.maximum(instances.awaited_ns - instances.start_ns, 0)[is_blocking]
    its = np.flatnonzero(is_call)
    return int((records.end[its] - records.start[its]).sum() + in_collectives.sum())
