# SPDX-License-Identifier: Apache-2.0
"""Messages of a step as waits of operations: who waits for which call of the peer.

The k-th send from one rank to another on a communicator belongs to the k-th receive there, where
both sides have as many. A send that was begun without blocking is known by the wait for it: the
message left before. Where the sender's call is not known (MPI_Sendrecv, tests, sends never waited
for), the message left when the receive ended: where the sender was then in a call of MPI, at the
latest at the beginning of that call.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from weir.analysis.columns import numbered
from weir.report.waits.awaited import RECEIVED, SENT, Awaited
from weir.report.waits.locations import Locations
from weir.report.waits.records import Records, silent_ops
from weir.trace.ops import NESTED, mpi_routines

EAGER_BYTES = 4096  # every MPI sends as much without waiting for the receiver
_WITH_RECEIVE = ("MPI_Sendrecv", "MPI_Sendrecv_replace")
BLOCKED_NS = 200_000  # a send that lasts as long waits for its receiver
CLOCK_NS = 1_000_000  # by which clocks of nodes may differ at most
CALLS_AT_ONCE = 1 << 17  # of several strands together


class Calls(NamedTuple):
    """Operations by row: strand, start, end; main strand and end of each rank, and whether several
    of its threads call MPI."""

    strand: np.ndarray
    start: np.ndarray
    end: np.ndarray
    main_of: np.ndarray
    died_ns: np.ndarray
    has_several: np.ndarray
    count: int


class MessageWaits(NamedTuple):
    """row waits for the start of the operation `awaited`, or where it is negative for the mark
    -1 - awaited: a point of a strand, mark_strand and mark_ns. known: operations whose partners are
    known, whether or not they wait."""

    row: np.ndarray
    awaited: np.ndarray
    mark_strand: np.ndarray
    mark_ns: np.ndarray
    known: np.ndarray


class _Side(NamedTuple):
    """Sends, receives or probes. row: of the operation; of, to: ranks that send and receive."""

    row: np.ndarray
    of: np.ndarray
    to: np.ndarray
    name: np.ndarray
    start: np.ndarray
    end: np.ndarray
    size: np.ndarray
    is_blocking: np.ndarray

    def at(self, chosen: np.ndarray) -> _Side:
        return _Side(*(column[chosen] for column in self))


def message_waits(
    records: Records, awaited: Awaited, locations: Locations, of_record: np.ndarray, calls: Calls
) -> MessageWaits:
    receives, sends, probes = (
        _side(records, awaited, locations, of_record, calls.has_several, *one)
        for one in (("MPI_receive", RECEIVED), ("MPI_send", SENT), ("MPI_probe", -1))
    )
    match = _matched(sends, receives)
    sent = np.where(match >= 0, sends.start[match] if len(sends.row) else 0, 0)
    tolerance = np.where(locations.node[receives.of] != locations.node[receives.to], CLOCK_NS, 0)
    is_known = (match >= 0) & (sent <= receives.end + tolerance)
    known = np.flatnonzero(is_known)
    awaited_row = np.full(len(receives.row), -1, np.int32)
    awaited_row[known] = sends.row[match[known]]
    of_probe = _next(probes, receives)
    probed = np.where(of_probe >= 0, awaited_row[of_probe] if len(awaited_row) else -1,
        np.int32(-1))
    probed = np.where((probed >= 0) & (calls.start[probed] <= probes.end), probed, -1)
    row, of = np.r_[receives.row, probes.row], np.r_[receives.of, probes.of]
    end = np.minimum(np.r_[receives.end, probes.end], calls.died_ns[of])
    found = np.r_[awaited_row, probed]
    unknown = np.flatnonzero(found < 0)
    strand = calls.main_of[of[unknown]]
    within = _within(calls, strand, end[unknown])
    marks = np.flatnonzero(within < 0)
    within[marks] = -1 - np.arange(len(marks), dtype=np.int32)
    found[unknown] = within
    came = np.zeros(calls.count, np.int64)  # the last awaited one of each operation
    np.maximum.at(came, row[found >= 0], calls.start[found[found >= 0]])
    back = _rendezvous(sends, receives, match, is_known, calls, came)
    return MessageWaits(
        np.r_[row, back[0]], np.r_[found, back[1]], strand[marks], end[unknown[marks]],
        np.concatenate([side.row for side in (receives, sends, probes)]),
    )  # fmt: skip


def _side(
    records: Records, awaited: Awaited, locations: Locations, of_record: np.ndarray,
    has_several: np.ndarray, op: str, kind: int,
) -> _Side:  # fmt: skip
    """Those whose peer is known and is another rank, or another thread of this one."""
    is_blocking = (records.op == silent_ops().get(op, -1)) & ((records.flags & NESTED) == 0)
    if op == "MPI_send":
        is_blocking |= (awaited.kind == kind) & _is_of(awaited.routine, *_WITH_RECEIVE)
    at = np.flatnonzero((is_blocking | (awaited.kind == kind)) & (records.offset >= 0)
        & (of_record >= 0)).astype(np.int32)
    own = locations.of_member.astype(np.int32)[records.member[at]]
    peer = locations.at(locations.program[own], records.offset[at]).astype(np.int32)
    kept = (own >= 0) & (peer >= 0) & ((peer != own) | has_several[own])
    at, own, peer = at[kept], own[kept], peer[kept]
    of, to = (own, peer) if op == "MPI_send" else (peer, own)
    return _Side(
        of_record[at], of, to, records.name[at], records.start[at], records.end[at],
        records.size[at], is_blocking[at],
    )  # fmt: skip


def _is_of(routine: np.ndarray, *names: str) -> np.ndarray:
    return np.isin(routine, [value for value, name in mpi_routines().items() if name in names])


def _keys(*sides: _Side) -> list[np.ndarray]:
    """One number for each sender, receiver and communicator, on all sides the same."""
    columns = [np.concatenate([getattr(side, name) for side in sides])
        for name in ("of", "to", "name")]
    most = int(columns[1].max(initial=0)) + 1
    _, pair = numbered(columns[0].astype(np.int64) * most + columns[1])
    _, key = numbered(pair.astype(np.int64) * (int(columns[2].max(initial=0)) + 2) + columns[2] + 1)
    return np.split(key, np.cumsum([len(side.row) for side in sides])[:-1])


def _matched(sends: _Side, receives: _Side) -> np.ndarray:
    """For each receive its send, -1 where the numbers on the two sides differ."""
    found = np.full(len(receives.row), -1, np.int32)
    if not len(sends.row) or not len(receives.row):
        return found
    of_sends, of_receives = _keys(sends, receives)
    count = int(max(of_sends.max(), of_receives.max())) + 1
    equal = np.bincount(of_sends, minlength=count) == np.bincount(of_receives, minlength=count)
    send_order = np.lexsort((sends.end, sends.start, of_sends)).astype(np.int32)
    receive_order = np.lexsort((receives.start, receives.end, of_receives)).astype(np.int32)
    send_order = send_order[equal[of_sends[send_order]]]
    receive_order = receive_order[equal[of_receives[receive_order]]]
    found[receive_order] = send_order
    return found


def _next(probes: _Side, receives: _Side) -> np.ndarray:
    """The receive of what a probe found: the next one of this sender and communicator."""
    if not len(probes.row) or not len(receives.row):
        return np.full(len(probes.row), -1)
    of_probes, of_receives = _keys(probes, receives)
    count = len(probes.row)
    key, time = np.r_[of_probes, of_receives], np.r_[probes.end, receives.start]
    is_receive = np.arange(len(key)) >= count
    order = np.lexsort((is_receive, time, key))[::-1]
    places = np.where(is_receive[order], np.arange(len(order)), -1)
    last = np.maximum.accumulate(places)
    at = order[np.maximum(last, 0)]
    fits = (last >= 0) & (key[at] == key[order])
    found = np.full(len(key), -1)
    found[order] = np.where(fits, at - count, -1)
    return found[:count]


def _within(calls: Calls, strand: np.ndarray, time: np.ndarray) -> np.ndarray:
    """The operation in which each strand is at a timestamp, -1 when in none."""
    found = np.full(len(strand), -1, np.int32)
    if not len(strand):
        return found
    strands = int(max(calls.strand.max(), strand.max())) + 1
    of_calls, of_asked = _by_strand(calls.strand, strands), _by_strand(strand, strands)
    for low, high in _batches(of_calls[1] + of_asked[1]):
        its, asked = (order[first[low] : first[high]] for order, first in (of_calls, of_asked))
        if len(asked):
            at = (_within_one if high == low + 1 else _within_some)(calls, its, strand[asked],
                time[asked])
            found[asked] = np.where(at >= 0, its[at] if len(its) else -1, -1)
    return found


def _by_strand(strand: np.ndarray, strands: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows by strand, and where those of each begin."""
    first = np.r_[0, np.cumsum(np.bincount(strand, minlength=strands))]
    return np.argsort(strand, kind="stable").astype(np.int32), first


def _batches(first: np.ndarray) -> Iterator[tuple[int, int]]:
    """First strand and that behind the last one, of about CALLS_AT_ONCE rows."""
    low = 0
    while low < len(first) - 1:
        high = int(np.searchsorted(first, first[low] + CALLS_AT_ONCE, "right")) - 1
        yield low, max(high, low + 1)
        low = max(high, low + 1)


def _within_one(calls: Calls, its: np.ndarray, strand: np.ndarray, time: np.ndarray) -> np.ndarray:
    """As _within_some(), of a single strand."""
    start = calls.start[its]
    order = np.argsort(start, kind="stable")
    # what begins just then is behind the question
    place = np.searchsorted(start[order], time, "left") - 1
    at = order[np.maximum(place, 0)] if len(its) else place
    return np.where((place >= 0) & (calls.end[its[at]] >= time if len(its) else False), at, -1)


def _within_some(calls: Calls, its: np.ndarray, strand: np.ndarray, time: np.ndarray) -> np.ndarray:
    """Of operations `its` of several strands the place of that in which each strand is then."""
    count = len(its)
    if not count:
        return np.full(len(strand), -1)
    who, when = np.r_[calls.strand[its], strand], np.r_[calls.start[its], time]
    is_call = np.arange(len(who)) < count
    order = np.lexsort((is_call, when, who))  # what begins just then is behind the question
    places = np.where(is_call[order], np.arange(len(order)), -1)
    last = np.maximum.accumulate(places)
    at = order[np.maximum(last, 0)]
    fits = (last >= 0) & (who[at] == who[order])
    fits &= calls.end[its[np.minimum(at, count - 1)]] >= when[order]
    found = np.full(len(who), -1)
    found[order] = np.where(fits, at, -1)
    return found[count:]


def _rendezvous(
    sends: _Side, receives: _Side, match: np.ndarray, is_known: np.ndarray, calls: Calls,
    came: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Sends that wait for their receiver: pairs of the send's operation and the receive's.

    One that ended before its receive began waited for nobody, and none of that size does. One that
    ended later did, where the receive began within it, or where it is large. MPI may also hold back
    small messages until the receiver calls MPI, whatever it calls: such sends, and those whose
    receive is not known, wait for the call in which the receiver was when they ended.
    """
    at = np.flatnonzero(is_known)
    send = sends.at(match[at])
    row, received = receives.row[at], receives.start[at]
    left = send.is_blocking & (send.end < received)
    eager = max(EAGER_BYTES, int((send.size[left] & 0xFFFFFFFF).max(initial=0)))
    is_seen = (send.start < received) & (received <= send.end)
    is_large = ((send.size & 0xFFFFFFFF) > eager) | _is_of(send.size >> 32, "MPI_Ssend")
    # A small send that ends soon need not have waited, nor one in an MPI_Sendrecv that lasted until
    # its own message came.
    is_small = (receives.size[at] & 0xFFFFFFFF) <= EAGER_BYTES
    since = np.maximum(came[send.row], send.start)
    is_seen &= is_large | ~is_small | (received - since >= BLOCKED_NS)
    # A wait for requests ends with the last of them: it says nothing of a small message.
    is_seen &= send.is_blocking | ~is_small
    waits = is_seen | (send.is_blocking & is_large & (received <= send.start))
    known = send.row[waits], row[waits]
    others = np.ones(len(sends.row), bool)
    others[match[at[waits]]] = False
    is_matched = np.zeros(len(sends.row), bool)
    is_matched[match[at]] = True
    rest = np.flatnonzero(others & sends.is_blocking)
    others = sends.at(rest)
    within = _within(calls, calls.main_of[others.to], others.end)
    later = calls.start[np.maximum(within, 0)] - others.start
    is_later = (within >= 0) & (later > 0)
    is_later &= ~is_matched[rest] | ((later >= BLOCKED_NS)
        & (2 * later >= others.end - others.start))
    return np.r_[known[0], others.row[is_later]], np.r_[known[1], within[is_later]]
