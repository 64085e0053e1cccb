# SPDX-License-Identifier: Apache-2.0
"""Waits: which task waited from when to when for which other one, in collectives and for messages."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from weir.analysis.columns import starts
from weir.analysis.waits.instances import Communicators, Instances
from weir.analysis.waits.records import Records, rows_of, silent_ops
from weir.analysis.waits.tasks import Tasks
from weir.trace.ops import NESTED

RECEIVED, COLLECTIVE, SENT = 1, 2, 3  # what a wait completed, in the upper half of an MPI_awaited record's size
_MESSAGES = ("MPI_receive", "MPI_probe", "MPI_send")
_SYNCHRONISING = ("MPI_wait", *_MESSAGES)


@dataclass(frozen=True)
class Waits:
    """Arrays by wait. task waited from begin_ns to until_ns for `awaited`; end_ns: when its call returned; instance: of a collective, -1 for messages; name: of the communicator; routine: of the call. group: waits with one
    number are one call that waited for several tasks at once."""

    task: np.ndarray
    begin_ns: np.ndarray
    until_ns: np.ndarray
    end_ns: np.ndarray
    awaited: np.ndarray
    instance: np.ndarray
    name: np.ndarray
    routine: np.ndarray
    group: np.ndarray

    def __len__(self) -> int:
        return len(self.task)

    def where(self, mask: np.ndarray) -> Waits:
        return rows_of(self, mask)


def waits_of(records: Records, comms: Communicators, tasks: Tasks, instances: Instances) -> Waits:
    """All waits whose awaited task is known, waits of no length included for what is awaited in a collective that does not block."""
    parts = [_blocking(instances, comms)]
    task = tasks.of_member[records.member]
    ops = silent_ops()
    nested = records.op == ops.get("MPI_awaited", -1)
    kind = np.where(nested, records.size >> 32, 0)
    routine = np.where(nested, _routine_of_wait(records, nested, ops.get("MPI_wait", -1)), records.size >> 32)
    of_collective = np.flatnonzero(kind == COLLECTIVE)
    parts.append(_collective(records, comms, instances, of_collective, task, routine))
    is_message = np.isin(records.op, [ops[name] for name in _MESSAGES if name in ops]) & ((records.flags & NESTED) == 0)
    of_message = np.flatnonzero((is_message | (kind == RECEIVED) | (kind == SENT)) & (records.offset >= 0))
    parts.append(_messages(records, tasks, of_message, task, routine))
    joined = Waits(*(np.concatenate(column) for column in zip(*(tuple(getattr(one, f.name) for f in fields(one)) for one in parts))))
    return _grouped(joined)


def _blocking(instances: Instances, comms: Communicators) -> Waits:
    rows = np.flatnonzero(instances.is_blocking & (instances.awaited != instances.task) & (instances.awaited_ns > instances.start_ns))
    of = instances.instance[rows]
    return Waits(
        instances.task[rows], instances.start_ns[rows], instances.awaited_ns[rows], instances.end_ns[rows], instances.awaited[rows], of,
        comms.name[instances.comm[of]], instances.routine[of], np.full(len(rows), -1),
    )  # fmt: skip


def _collective(
    records: Records, comms: Communicators, instances: Instances, at: np.ndarray, task: np.ndarray, routine: np.ndarray
) -> Waits:
    of = instances.find(comms.of_record[at], records.offset[at])
    at, of = at[of >= 0], of[of >= 0]
    until = np.clip(instances.last_ns[of], records.start[at], records.end[at])
    return Waits(
        task[at], records.start[at], until, records.end[at], instances.critical[of], of, comms.name[instances.comm[of]], routine[at],
        records.start[at],
    )  # fmt: skip


def _messages(records: Records, tasks: Tasks, at: np.ndarray, task: np.ndarray, routine: np.ndarray) -> Waits:
    known = task[at] >= 0
    at = at[known]
    peer = tasks.at(tasks.program[task[at]], records.offset[at])
    known = (peer >= 0) & (peer != task[at])
    at, peer = at[known], peer[known]
    return Waits(
        task[at], records.start[at], records.end[at], records.end[at], peer, np.full(len(at), -1), records.name[at], routine[at],
        records.start[at],
    )  # fmt: skip


def _grouped(waits: Waits) -> Waits:
    """Group numbers: one for each call. Blocking collectives have none in common."""
    alone = waits.group < 0
    if not len(waits):
        return waits
    order = np.lexsort((waits.group, waits.task))
    begins = np.zeros(len(waits), bool)
    begins[starts(waits.task[order], waits.group[order])] = True
    begins |= alone[order]
    group = np.empty(len(waits), np.int64)
    group[order] = np.cumsum(begins) - 1
    return Waits(**{field.name: getattr(waits, field.name) for field in fields(waits)} | {"group": group})


def _routine_of_wait(records: Records, nested: np.ndarray, wait: int) -> np.ndarray:
    """For each awaited record the routine of the wait of the same process and start; 0 when its record is lost."""
    at = np.flatnonzero(nested | (records.op == wait))
    found = np.zeros(len(records), np.int64)
    if not len(at):
        return found
    order = at[np.lexsort((nested[at], records.start[at], records.member[at]))]
    is_wait = ~nested[order]
    place = np.maximum.accumulate(np.where(is_wait, np.arange(len(order)), -1))
    owner = order[np.maximum(place, 0)]
    fits = (place >= 0) & (records.start[owner] == records.start[order]) & (records.member[owner] == records.member[order])
    found[order] = np.where(fits, records.size[owner] >> 32, 0)
    return found


def waiting_ns(records: Records, instances: Instances) -> int:
    """Time that tasks spent waiting: in collectives until the awaited task came, in all of receives, probes, sends and waits."""
    is_call = np.isin(records.op, [silent_ops()[name] for name in _SYNCHRONISING if name in silent_ops()]) & ((records.flags & NESTED) == 0)
    in_collectives = np.maximum(instances.awaited_ns - instances.start_ns, 0)[instances.is_blocking]
    return int((records.end - records.start)[is_call].sum() + in_collectives.sum())
