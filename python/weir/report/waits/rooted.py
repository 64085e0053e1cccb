# SPDX-License-Identifier: Apache-2.0
"""For whom ranks wait in blocking collectives: for all, for the root, or for nobody.

A gathering collective's root waits for all; the others wait for the root, unless they left before
it came. From a root that distributes all others wait; the root waits where it left after they
came. In traces that do not name the root it is the rank that most often left such a collective of
its communicator after all had come (came before anybody left, where it distributes).
"""

from __future__ import annotations

import numpy as np

from weir.report.waits.instances import Instances
from weir.report.waits.messages import EAGER_BYTES
from weir.report.waits.records import Records
from weir.trace.ops import ROOT

GATHERING = ("Gather", "Gatherv", "Reduce")
DISTRIBUTING = ("Bcast", "Scatter", "Scatterv")
BY_TREE = ("Gather", "Reduce")  # where ranks hand on what others sent them


def _numbers(routines: dict[int, str], names: tuple[str, ...]) -> list[int]:
    return [value for value, name in routines.items() if name.removeprefix("MPI_") in names]


def rooted_waits(
    records: Records, instances: Instances, at: np.ndarray, of: np.ndarray, rows: np.ndarray,
    location: np.ndarray, routines: dict[int, str],
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Pairs of an operation and what it waits for (analysis/replay.py). at, of, rows, location: of
    each rank in each blocking collective its record, the instance, the operation and the rank."""
    routine = records.size[at] >> 32
    gathers = np.isin(routine, _numbers(routines, GATHERING))
    distributes = np.isin(routine, _numbers(routines, DISTRIBUTING))
    others = ~(gathers | distributes)
    parts = [(rows[others], ~of[others])]
    for chosen, is_gathering in ((gathers, True), (distributes, False)):
        if not chosen.any():
            continue
        some = np.flatnonzero(chosen)
        order = some[np.argsort(of[some], kind="stable")]
        of_rows = _Rows(records, at[order], of[order], rows[order], location[order], instances)
        by_tree = np.isin(routine[order], _numbers(routines, BY_TREE))
        parts += of_rows.gathering(by_tree) if is_gathering else of_rows.distributing()
    return tuple(np.concatenate(side) for side in zip(*parts))


class _Rows:
    """Ranks in collectives, those of an instance together."""

    def __init__(self, records: Records, at: np.ndarray, of: np.ndarray, rows: np.ndarray,
            location: np.ndarray, instances: Instances):
        self.of, self.rows, self.location = of, rows, location
        self.start, self.end = records.start[at], records.end[at]
        self.bytes = records.size[at] & 0xFFFFFFFF
        self.is_root = (records.flags[at] & ROOT) != 0
        self.begins = np.flatnonzero(np.r_[True, np.diff(of) != 0])
        self.counts = np.diff(np.r_[self.begins, len(of)])
        key = instances.comm[of].astype(np.int64) * (1 << 16) + (records.size[at] >> 32)
        _, self.group = np.unique(key, return_inverse=True)

    def _all(self, ufunc: np.ufunc, column: np.ndarray) -> np.ndarray:
        """Of each instance, for each of its rows."""
        return np.repeat(ufunc.reduceat(column, self.begins), self.counts)

    def _root(self, fits: np.ndarray, tie: np.ndarray) -> np.ndarray:
        """The row of the root of each instance, for each row. Where no record names it: of those
        that fit the rank that fits most often on its communicator, of equals the greatest `tie`."""
        most = int(self.location.max()) + 1
        _, who = np.unique(self.group * most + self.location, return_inverse=True)
        votes = np.bincount(who, fits)[who]
        order = np.lexsort((tie, votes, fits, self.is_root, self.of))
        return np.repeat(order[self.begins + self.counts - 1], self.counts)

    def _eager(self, left: np.ndarray) -> np.ndarray:
        """Whether ranks leave without waiting, by group of collectives and bytes. left: who did."""
        most = np.full(int(self.group.max()) + 1, EAGER_BYTES)
        np.maximum.at(most, self.group[left], self.bytes[left])
        return self.bytes <= most[self.group]

    def _last_seen(self) -> np.ndarray:
        """The row that came last before each row left."""
        order = np.lexsort((self.start, self.of))
        time = np.r_[self.start[order], self.end]
        of = np.r_[self.of[order], self.of]
        is_end = np.arange(len(time)) >= len(order)
        merged = np.lexsort((is_end, time, of))
        last = np.maximum.accumulate(np.where(is_end[merged], -1, np.arange(len(merged))))
        found = np.empty(len(time), np.int64)
        found[merged] = order[np.minimum(merged[last], len(order) - 1)]
        return found[len(order) :]

    def gathering(self, by_tree: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        last = self._all(np.maximum, self.start)
        root = self._root(self.end >= last, self.end)
        is_root = root == np.arange(len(root))
        came = self.start[root]
        # A call of no length waited for nobody.
        left = ~is_root & ((self.end < came) | (self.end == self.start))
        waits = ~is_root & ~left & ((self.start < came) | ~self._eager(left))
        seen = self._last_seen()
        tree = by_tree & ~is_root & (self.start[seen] > np.maximum(self.start,
            np.where(waits, came, 0)))
        return [
            (self.rows[is_root], ~self.of[is_root]),
            (self.rows[waits], self.rows[root[waits]]),
            (self.rows[tree], self.rows[seen[tree]]),
        ]

    def distributing(self) -> list[tuple[np.ndarray, np.ndarray]]:
        first = self._all(np.minimum, self.end)
        root = self._root(self.start <= first, -self.start)
        is_root = root == np.arange(len(root))
        waits = ~is_root & (self.start[root] <= self.end)
        left = is_root & (self.end < self._all(np.maximum, self.start))
        seen = self._last_seen()
        back = is_root & ~left & ((self.start[seen] > self.start) | ~self._eager(left))
        return [(self.rows[waits], self.rows[root[waits]]), (self.rows[back], ~self.of[back])]
