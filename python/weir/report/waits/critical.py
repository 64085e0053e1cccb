# SPDX-License-Identifier: Apache-2.0
"""What each collective would have been earlier without I/O: of the rank that was waited for (exposed), of all of them (critical)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from weir.report.waits.awaited import Waits
from weir.report.waits.instances import Instances

_MOST_SETS = 1000  # of ranks that communicators can consist of: above, only equal sets are compared
_NEVER = -(2**62)


@dataclass(frozen=True)
class Stretches:
    """Arrays by arrival: I/O from since_ns on counts, when it ends before arrival_ns, where the rank begins to wait. kind: by communicator, which set of ranks it
    has."""

    since_ns: np.ndarray
    arrival_ns: np.ndarray
    kind: np.ndarray


@dataclass(frozen=True)
class CriticalTime:
    """Arrays by instance, ns. since_ns: where the I/O of its critical rank begins that counts; io_ns: how much that is; kind: which set of ranks."""

    since_ns: np.ndarray
    io_ns: np.ndarray
    exposed_ns: np.ndarray
    critical_ns: np.ndarray
    kind: np.ndarray


def stretches(instances: Instances, waits: Waits, first_ns: int) -> Stretches:
    """I/O counts since the rank left the last collective of a communicator that has all ranks of this one; at first, since first_ns."""
    if not len(instances):
        nothing = np.empty(0, np.int64)
        return Stretches(nothing, nothing, nothing)
    arrival, leave = _when_waiting(instances, waits)
    kind, sets = _sets(instances)
    return Stretches(_since(instances, arrival, leave, kind, sets, first_ns), arrival, kind)


def critical_time(instances: Instances, of: Stretches, io_ns: np.ndarray) -> CriticalTime:
    """io_ns: of each arrival's rank in its stretch."""
    count, last = len(instances), instances.arrival_ns
    is_critical = instances.location == instances.critical[instances.instance]
    counts = is_critical | (instances.awaited == instances.critical[instances.instance])
    without, others = (np.full(count, _NEVER) for _ in range(2))
    np.maximum.at(without, instances.instance[counts], (of.arrival_ns - io_ns)[counts])
    np.maximum.at(others, instances.instance[counts & ~is_critical], of.arrival_ns[counts & ~is_critical])
    at = np.empty(count, np.int64)
    at[instances.instance[is_critical]] = np.flatnonzero(is_critical)
    io, has_others = io_ns[at], others > _NEVER
    exposed = np.where(has_others & (others < last), np.minimum(io, last - np.minimum(others, last)), 0)
    critical = np.where(has_others, np.clip(last - np.maximum(without, last - io), 0, None), 0)
    return CriticalTime(of.since_ns[at], io, exposed, critical, of.kind[instances.comm])


def _when_waiting(instances: Instances, waits: Waits) -> tuple[np.ndarray, np.ndarray]:
    """By arrival: when the rank began to wait, and when it went on. A rank that began a collective waits for it later, or is not known to."""
    arrival, leave = instances.start_ns.copy(), instances.end_ns.copy()
    of_critical = instances.location == instances.critical[instances.instance]
    started = np.flatnonzero(~instances.is_blocking)
    if not len(started):
        return arrival, leave
    ordered = started[np.lexsort((instances.location[started], instances.instance[started]))]
    stride = int(max(instances.location.max(), waits.location.max(initial=0))) + 1
    keys = instances.instance[ordered] * stride + instances.location[ordered]
    known = waits.where(waits.instance >= 0)
    sought = known.instance * stride + known.location
    at = np.minimum(np.searchsorted(keys, sought), len(keys) - 1)
    found = keys[at] == sought
    begin = np.full(len(ordered), instances.last_ns[instances.instance[ordered]])  # who is not known to wait is not kept waiting
    end = instances.end_ns[ordered].copy()
    begin[at[found]], end[at[found]] = known.begin_ns[found], known.end_ns[found]
    arrival[ordered] = np.where(of_critical[ordered], arrival[ordered], begin)
    leave[ordered] = end
    return arrival, leave


def _sets(instances: Instances) -> tuple[np.ndarray, list[frozenset[int]]]:
    """The ranks of each communicator as the number of a set, and the sets."""
    order = np.lexsort((instances.location, instances.comm[instances.instance]))
    comm, location = instances.comm[instances.instance][order], instances.location[order]
    pairs = np.flatnonzero(np.r_[True, (np.diff(comm) != 0) | (np.diff(location) != 0)])
    comm, location = comm[pairs], location[pairs]
    begins = np.flatnonzero(np.r_[True, np.diff(comm) != 0])
    kind = np.zeros(int(comm[-1]) + 1, np.int64)
    numbers: dict[frozenset[int], int] = {}
    for number, group in zip(comm[begins].tolist(), np.split(location, begins[1:])):
        kind[number] = numbers.setdefault(frozenset(group.tolist()), len(numbers))
    return kind, list(numbers)


def _since(instances: Instances, arrival: np.ndarray, leave: np.ndarray, kind: np.ndarray, sets: list[frozenset[int]], first_ns: int) -> np.ndarray:
    """For each arrival, when its rank left its last collective before, of a communicator that has all these ranks."""
    since = np.full(len(arrival), first_ns)
    of_row = kind[instances.comm[instances.instance]]
    rows_of = dict(by_location(of_row))  # by set
    for number, locations in enumerate(sets):
        larger = [other for other, those in enumerate(sets) if other == number or (len(sets) <= _MOST_SETS and locations < those)]
        others = np.concatenate([rows_of[other] for other in larger])
        if len(larger) > 1:
            is_of = np.zeros(int(instances.location.max()) + 1, bool)
            is_of[list(locations)] = True
            others = others[is_of[instances.location[others]]]
        order = others[np.lexsort((leave[others], arrival[others], instances.location[others]))]
        before = np.r_[first_ns, np.where(np.diff(instances.location[order]) == 0, leave[order[:-1]], first_ns)]
        is_wanted = of_row[order] == number
        since[order[is_wanted]] = before[is_wanted]
    return np.minimum(since, arrival)


def by_location(location: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Each rank (or other number) with the places where it stands, rising."""
    order = np.argsort(location, kind="stable")
    begins = np.flatnonzero(np.r_[True, np.diff(location[order]) != 0]) if len(order) else order
    for rows in np.split(order, begins[1:]) if len(order) else ():
        yield int(location[rows[0]]), rows
