# SPDX-License-Identifier: Apache-2.0
"""Intervals of tracks as begins and ends in an order in which they nest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Slices:
    """crosses: lies across the end of another interval of its track, so it cannot stand in it. end:
    cut where that helps."""

    end: np.ndarray
    crosses: np.ndarray


def nested(track: np.ndarray, start: np.ndarray, end: np.ndarray, slack: int) -> Slices:
    """What lies within another interval ends with it at the latest: up to `slack` beyond it is cut,
    more is crossing."""
    order = np.lexsort((-end, start, track))
    tracks, starts, ends = track[order], start[order], end[order].copy()
    crosses = np.zeros(len(order), bool)
    is_inside = np.zeros(len(order), bool)
    is_inside[1:] = (tracks[1:] == tracks[:-1]) & (starts[1:] < _latest_before(tracks, ends)[1:])
    open_ends: list[int] = []
    for at in np.flatnonzero(is_inside).tolist():
        if not is_inside[at - 1]:
            open_ends = [int(ends[at - 1])]
        begin, until = int(starts[at]), int(ends[at])
        while open_ends and open_ends[-1] <= begin:
            open_ends.pop()
        if open_ends and until > open_ends[-1]:
            if until - open_ends[-1] > slack:
                crosses[at] = True
                continue
            ends[at] = until = open_ends[-1]
        open_ends.append(until)
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return Slices(ends[back], crosses[back])


def _latest_before(tracks: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """For each interval the greatest end of those before it; of other tracks too, whose ends do not
    matter where a track begins."""
    if not len(ends):
        return ends
    # Tracks follow one another: an offset that grows with the track keeps the ends of one from
    # reaching into the next.
    number = np.cumsum(np.r_[0, tracks[1:] != tracks[:-1]])
    low, high = int(ends.min()), int(ends.max())
    if (high - low + 1) * (int(number[-1]) + 1) >= 2**62:
        return _latest_by_track(number, ends)
    lifted = ends - low + number * (high - low + 1)
    latest = np.maximum.accumulate(lifted) - number * (high - low + 1) + low
    return np.r_[latest[:1], latest[:-1]]


def _latest_by_track(number: np.ndarray, ends: np.ndarray) -> np.ndarray:
    latest = np.concatenate([np.maximum.accumulate(part)
        for part in np.split(ends, np.flatnonzero(np.diff(number)) + 1)])
    return np.r_[latest[:1], latest[:-1]]


def marker_order(track: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Order of begins (0 .. n-1) and ends (n .. 2n-1) by track and time: at one timestamp inner
    ends first, then outer begins.

    before: the intervals of a track nest.
    """
    count = len(start)
    place = np.arange(count)
    is_empty = start == end
    time = np.r_[start, end]
    # 0: ends of what began before; 1: begins of what goes on; 2: what begins and ends at this
    # timestamp
    turn = np.r_[np.where(is_empty, 2, 1), np.where(is_empty, 2, 0)]
    first = np.r_[np.where(is_empty, place, -end), np.where(is_empty, place, -start)]
    # Of equal intervals the one recorded last is the outer one.
    second = np.r_[np.where(is_empty, 0, -place), np.where(is_empty, 1, place)]
    return np.lexsort((second, first, turn, time, np.r_[track, track]))
