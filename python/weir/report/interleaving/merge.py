# SPDX-License-Identifier: Apache-2.0
"""Requests of several processes in the order in which they ended, a window at a time, and how many
of them begin where the one before ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Requests:
    """Columns of one length, in the order of ended_ns. of: the process or any other number from 0;
    file: a number from 0."""

    ended_ns: np.ndarray
    of: np.ndarray
    file: np.ndarray
    begin: np.ndarray
    end: np.ndarray

    def __len__(self) -> int:
        return len(self.ended_ns)

    def at(self, rows: np.ndarray | slice) -> Requests:
        return Requests(*(column[rows] for column in self._columns()))

    def _columns(self) -> tuple[np.ndarray, ...]:
        return self.ended_ns, self.of, self.file, self.begin, self.end

    @staticmethod
    def joined(parts: Sequence[Requests]) -> Requests:
        """In the order of their ends; those of a part stay in its order."""
        every = Requests(*(np.concatenate(columns)
            for columns in zip(*(part._columns() for part in parts))))
        return every.at(np.argsort(every.ended_ns, kind="stable"))


def merged(streams: Sequence[Iterator[Requests]]) -> Iterator[Requests]:
    """All streams as one. memory: one batch of each stream."""
    heads = {number: head for number, stream in enumerate(streams)
        if (head := next(stream, None)) is not None}
    while heads:
        until = min(int(head.ended_ns[-1]) for head in heads.values())
        ready = []
        for number, head in list(heads.items()):
            count = int(np.searchsorted(head.ended_ns, until, side="right"))
            if count:
                ready.append(head.at(slice(0, count)))
            if count < len(head):
                heads[number] = head.at(slice(count, None))
            elif (following := next(streams[number], None)) is not None:
                heads[number] = following
            else:
                del heads[number]
        yield Requests.joined(ready)


class Follower:
    """Finds the requests that begin where the last one of the same group ended, in the same file;
    remembers the last one of each group from window to window."""

    def __init__(self, groups: int):
        self._file = np.full(groups, -1, np.int64)
        self._end = np.full(groups, -1, np.int64)

    def follows(self, window: Requests, group: np.ndarray) -> np.ndarray:
        """A mask. group: a number from 0 of each request."""
        order = np.argsort(group, kind="stable")
        of, file, begin, end = (column[order]
            for column in (group, window.file, window.begin, window.end))
        is_first = np.r_[True, of[1:] != of[:-1]]
        file_before = np.where(is_first, self._file[of], np.r_[-1, file[:-1]])
        end_before = np.where(is_first, self._end[of], np.r_[-1, end[:-1]])
        is_last = np.r_[is_first[1:], True]
        self._file[of[is_last]], self._end[of[is_last]] = file[is_last], end[is_last]
        found = np.empty(len(of), bool)
        found[order] = (file_before == file) & (end_before == begin)
        return found
