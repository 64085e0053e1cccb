# SPDX-License-Identifier: Apache-2.0
"""For how long ranks have waited for one another up to each moment of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weir.analysis.columns import order_of
from weir.report.waits.account import Account
from weir.report.waits.awaited import Waits
from weir.trace import _abi

WINDOWS_AT_ONCE = 1 << 16  # as far as a rank has less


@dataclass(frozen=True)
class Growing:
    """A sum for each rank that grows in time (weir_reader_growing): from each of its timestamps on
    by `slope` ns each ns. first_of: of each rank, and behind the last one."""

    first_of: np.ndarray
    at_ns: np.ndarray
    total_ns: np.ndarray
    slope: np.ndarray

    @staticmethod
    def of_windows(ranks: int, rank: np.ndarray, begin_ns: np.ndarray, end_ns: np.ndarray,
            once: bool) -> Growing:
        """How many windows of a rank are open; once: whether any of them is."""
        order, first = order_of(rank).astype(np.int32), np.bincount(rank, minlength=ranks)
        first = np.r_[0, np.cumsum(first)]
        counts, parts = np.zeros(ranks, np.int64), []
        low = 0
        while low < ranks:  # some ranks at once: what is made on the way needs memory
            high = int(np.searchsorted(first, first[low] + WINDOWS_AT_ONCE, "right")) - 1
            high = max(high, low + 1)
            rows = order[first[low] : first[high]]
            where, *points = _points(rank[rows], begin_ns[rows], end_ns[rows], once)
            counts[low:high] = np.bincount(where - low, minlength=high - low)
            parts.append(points)
            low = high
        columns = zip(*parts) if parts else ((),) * 3
        at, total, slope = (np.concatenate([np.empty(0, kind), *column])
            for kind, column in zip((np.int64, np.int64, np.int32), columns))
        return Growing(np.r_[0, np.cumsum(counts)].astype(np.uint64), at, total, slope)

    def of(self, ranks: np.ndarray) -> Growing:
        """Of some ranks, in their order."""
        low, high = self.first_of[ranks].astype(np.int64), self.first_of[ranks + 1].astype(np.int64)
        first_of = np.r_[0, np.cumsum(high - low)]
        if (low[1:] == high[:-1]).all() and len(ranks):
            rows: slice | np.ndarray = slice(int(low[0]), int(high[-1]))
        else:
            rows = np.arange(first_of[-1]) + np.repeat(low - first_of[:-1], high - low)
        points = (one[rows] for one in (self.at_ns, self.total_ns, self.slope))
        return Growing(first_of.astype(np.uint64), *points)

    def native(self) -> _abi.Growing:
        return _abi.Growing(*(one.ctypes.data for one in vars(self).values()))


def _points(
    rank: np.ndarray, begin_ns: np.ndarray, end_ns: np.ndarray, once: bool
) -> tuple[np.ndarray, ...]:
    """Of some ranks, rising: rank, timestamp, sum and slope, where the slope changes."""
    where, at = np.r_[rank, rank], np.r_[begin_ns, end_ns]
    order = order_of(where, at)
    where, at = where[order], at[order]
    slope = np.cumsum(np.repeat(np.array([1, -1], np.int32), len(rank))[order], dtype=np.int32)
    slope = np.minimum(slope, 1) if once else slope
    is_last = np.r_[(where[1:] != where[:-1]) | (at[1:] != at[:-1]), True][: len(at)]
    where, at, slope = where[is_last], at[is_last], slope[is_last]
    is_new = np.r_[True, slope[1:] != slope[:-1]][: len(at)]  # 0 between two ranks
    where, at, slope = where[is_new], at[is_new], slope[is_new]
    grown = np.cumsum(np.r_[0, slope[:-1] * np.diff(at)][: len(at)])
    if not len(at):
        return where, at, grown, slope
    first = np.searchsorted(where, where)
    return where, at, grown - grown[first], slope


def waits_for(account: Account, writes: np.ndarray) -> tuple[Growing, Growing, Growing]:
    """Of ranks that write (a boolean by rank): how long others have waited for each of them, how
    long each has waited for others, and how long for others that were not yet in MPI.

    A call that waits for several ranks waits for the one that comes last."""
    waits, arrived, ranks = account.waits, _arrived(account), len(writes)
    is_long = waits.until_ns > waits.begin_ns
    rows = np.flatnonzero(is_long & writes[waits.awaited] & _is_last(waits, arrived))
    waited = Growing.of_windows(ranks, waits.awaited[rows], waits.begin_ns[rows],
        waits.until_ns[rows], once=False)
    strand, _, begin, until = account.operations.waiting()
    location = account.operations.location_of_strand[strand]
    rows = np.flatnonzero(account.operations.main[strand] & writes[location])
    waiting = Growing.of_windows(ranks, location[rows], begin[rows], until[rows], once=True)
    rows = np.flatnonzero((arrived > waits.begin_ns) & writes[waits.location])
    arriving = Growing.of_windows(ranks, waits.location[rows], waits.begin_ns[rows],
        arrived[rows], once=True)
    return waited, waiting, arriving


def _is_last(waits: Waits, arrived: np.ndarray) -> np.ndarray:
    """Mask of the waits that are those of their call for whom comes last."""
    mask = np.bincount(waits.group, minlength=1)[waits.group] == 1
    several = np.flatnonzero(~mask)
    group = waits.group[several]
    order = order_of(group, waits.until_ns[several], arrived[several])
    last = np.r_[np.diff(group[order]) != 0, True][: len(order)]
    mask[several[order[last]]] = True
    return mask


def _arrived(account: Account) -> np.ndarray:
    """When the awaited rank of each wait has come: to a collective; for a message, as long after
    the wait began as it was not in MPI meanwhile."""
    waits = account.waits
    arrived = waits.until_ns.copy()
    at = np.flatnonzero(waits.instance < 0)
    if len(at):
        busy = _in_mpi(account, waits, at)
        arrived[at] = np.maximum(waits.until_ns[at] - busy, waits.begin_ns[at])
    return arrived


def _in_mpi(account: Account, waits: Waits, at: np.ndarray) -> np.ndarray:
    """For how long of each wait the awaited rank was in MPI, in its main thread."""
    run, found = account.operations.replay, np.zeros(len(at), np.int64)
    limits = np.searchsorted(run.strand, np.arange(len(account.operations.main) + 1))
    strands = np.flatnonzero(account.operations.main)
    order = np.argsort(waits.awaited[at], kind="stable")
    cuts = np.searchsorted(waits.awaited[at][order], np.arange(len(strands) + 1))
    for location, strand in enumerate(strands.tolist()):
        rows = order[cuts[location] : cuts[location + 1]]
        if not len(rows):
            continue
        calls = slice(limits[strand], limits[strand + 1])
        begin, end, of = run.start_ns[calls], run.end_ns[calls], at[rows]
        found[rows] = _busy(begin, end, waits.until_ns[of]) - _busy(begin, end, waits.begin_ns[of])
    return found


def _busy(begin: np.ndarray, end: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """Length of intervals that follow one another, up to each moment."""
    before = np.r_[0, np.cumsum(end - begin)]
    place = np.searchsorted(begin, moments, "right")
    last = np.r_[end, 0][np.maximum(place - 1, 0)]
    return before[place] - np.where(place > 0, np.maximum(last - moments, 0), 0)
