# SPDX-License-Identifier: Apache-2.0
"""What the awaited rank did while others waited for it, followed over as many ranks as it takes.

A rank waits for I/O in those moments in which the awaited rank is in I/O, and for computing in
those in which it is neither in I/O nor in MPI. When the awaited rank waits itself, for a third one,
the third one's state counts, and so on. The rest is communication: both ranks are in MPI, and
neither waits for anybody who does something else.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from weir.report.wall.lines import ALL_CALLS, ALL_IO, CALLS, IO
from weir.report.waits.awaited import Waits

_MOST_HOPS = 64


@dataclass(frozen=True)
class Stays:
    """Waits of ranks as stretches that do not overlap, by rank and time: who waited from when to
    when for whom."""

    location: np.ndarray
    begin_ns: np.ndarray
    until_ns: np.ndarray
    awaited: np.ndarray

    def __len__(self) -> int:
        return len(self.location)

    def where(self, kept: np.ndarray) -> Stays:
        return Stays(*(getattr(self, field.name)[kept] for field in fields(self)))


def stays_of(waits: Waits, weight: np.ndarray) -> Stays:
    """weight: of each wait; of a call that waits for several ranks, that with the most counts."""
    kept = np.flatnonzero(waits.until_ns > waits.begin_ns)
    order = kept[np.lexsort((weight[kept], waits.group[kept]))]
    is_last = np.r_[waits.group[order][1:] != waits.group[order][:-1], True][: len(order)]
    order = order[is_last]
    order = order[np.lexsort((waits.until_ns[order], waits.begin_ns[order], waits.location[order]))]
    found = Stays(
        waits.location[order], waits.begin_ns[order], waits.until_ns[order], waits.awaited[order]
    )
    return _disjoint(found)


def _disjoint(found: Stays) -> Stays:
    """What two calls have in common (of two threads) belongs to the one that began first."""
    begin = found.begin_ns.copy()
    for rows in np.split(np.arange(len(found)), np.flatnonzero(np.diff(found.location)) + 1):
        reach = np.maximum.accumulate(found.until_ns[rows])
        begin[rows[1:]] = np.maximum(begin[rows[1:]], reach[:-1])
    cut = Stays(found.location, np.minimum(begin, found.until_ns), found.until_ns, found.awaited)
    return cut.where(cut.begin_ns < cut.until_ns)


class Points:
    """Moments of ranks at which the lines are asked, each once, and where each stands.

    A moment in which its rank waits leads to the same moment of the awaited rank.
    """

    def __init__(self, stays: Stays, location: np.ndarray, at_ns: np.ndarray):
        """location, at_ns: moments that are asked besides the ends of the waits."""
        self.stays = stays
        both = np.r_[stays.begin_ns, stays.until_ns]
        moments = (
            np.r_[location, stays.location, stays.location, stays.awaited, stays.awaited],
            np.r_[at_ns, both, both],
        )
        self._number(*moments)
        for _ in range(_MOST_HOPS):
            within = self._within(self.location, self.at_ns)
            inside = within >= 0
            where = stays.awaited[within[inside]], self.at_ns[inside]
            count = len(self.location)
            self._number(np.r_[self.location, where[0]], np.r_[self.at_ns, where[1]])
            if len(self.location) == count:
                break
        self.within = self._within(self.location, self.at_ns)
        self.complete = self._complete(self.location, self.at_ns)
        inside = np.flatnonzero(self.within >= 0)
        led = stays.awaited[self.within[inside]]
        at, known = self._find(led, self.at_ns[inside])
        self.within[inside[~known]] = -1  # too many hops
        self.next = np.zeros(len(self.location), np.int64)
        self.next[inside] = np.where(known, at, 0)
        self.own = self.find(stays.location, stays.begin_ns), self.find(stays.location,
            stays.until_ns)
        self.led = self.find(stays.awaited, stays.begin_ns), self.find(stays.awaited,
            stays.until_ns)

    def find(self, location: np.ndarray, at_ns: np.ndarray) -> np.ndarray:
        """Where moments stand that are known."""
        return self._find(location, at_ns)[0]

    def _number(self, location: np.ndarray, at_ns: np.ndarray) -> None:
        self.times = np.unique(at_ns)
        self.keys = np.unique(self._key(location, at_ns))
        count = max(len(self.times), 1)
        self.location, self.at_ns = self.keys // count, self.times[self.keys % count]

    def _key(self, location: np.ndarray, at_ns: np.ndarray) -> np.ndarray:
        return location.astype(np.int64) * len(self.times) + np.searchsorted(self.times, at_ns)

    def _find(self, location: np.ndarray, at_ns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        keys = self._key(location, at_ns)
        at = np.minimum(np.searchsorted(self.keys, keys), max(len(self.keys) - 1, 0))
        return at, self.keys[at] == keys

    def _complete(self, location: np.ndarray, at_ns: np.ndarray) -> np.ndarray:
        """For each moment, how many waits stand before the first of its rank that goes on."""
        ends = self._key(self.stays.location, self.stays.until_ns)
        return np.searchsorted(ends, self._key(location, at_ns), "right")

    def _within(self, location: np.ndarray, at_ns: np.ndarray) -> np.ndarray:
        """The wait that each moment lies in, -1 none."""
        at = self._complete(location, at_ns)
        last = max(len(self.stays) - 1, 0)
        if not len(self.stays):
            return np.full(len(location), -1, np.int64)
        row = np.minimum(at, last)
        inside = (at <= last) & (self.stays.location[row] == location)
        inside &= (self.stays.begin_ns[row] < at_ns) & (at_ns < self.stays.until_ns[row])
        return np.where(inside, row, -1)


@dataclass(frozen=True)
class Caused:
    """Time of waits that I/O and that computing caused, added up to each moment of Points."""

    io_ns: np.ndarray
    computing_ns: np.ndarray


def caused(points: Points, lengths: np.ndarray) -> Caused:
    """lengths: by union (weir.report.wall.lines) and moment. Each round follows one rank more."""
    stays = points.stays
    calls, io = lengths[ALL_CALLS], lengths[ALL_IO]
    free = points.at_ns - calls  # computing, but for a constant of each rank
    room = lengths[CALLS] - lengths[IO]
    found = np.zeros((2, len(stays)), np.int64)
    for _ in range(_MOST_HOPS):
        sums = np.zeros((2, len(points.location)), np.int64)
        before = np.c_[np.zeros((2, 1), np.int64), np.cumsum(found, axis=1)]
        sums += before[:, points.complete]
        sums += _of_unfinished(points, np.stack([io, free]), room, before)
        states = np.stack([io, free]) + sums
        whole = states[:, points.led[1]] - states[:, points.led[0]]
        made = _fitted(whole, room[points.own[1]] - room[points.own[0]])
        if np.array_equal(made, found):
            break
        found = made
    return Caused(*sums)


def _of_unfinished(
    points: Points, states: np.ndarray, room: np.ndarray, before: np.ndarray
) -> np.ndarray:
    """The part of the wait that a moment lies in, up to that moment."""
    out = np.zeros_like(states)
    inside = np.flatnonzero(points.within >= 0)
    # From the awaited rank's next to its next: a moment's part needs that of the one it leads to.
    for _ in range(_MOST_HOPS):
        every = states + before[:, points.complete] + out
        row = points.within[inside]
        part = every[:, points.next[inside]] - every[:, points.led[0][row]]
        part = _fitted(part, room[inside] - room[points.own[0][row]])
        if np.array_equal(part, out[:, inside]):
            break
        out[:, inside] = np.maximum(part, out[:, inside])
    return out


def _fitted(parts: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Two parts of a wait, cut to what the wait has room for, the first one first."""
    first = np.clip(parts[0], 0, np.maximum(room, 0))
    return np.stack([first, np.clip(parts[1], 0, np.maximum(room, 0) - first)])
