# SPDX-License-Identifier: Apache-2.0
"""A run once more with some of its I/O at no cost, and its critical path: native/reader/replay.cc
over arrays.

The run is given as operations of strands (threads that call MPI) and what each of them waits for.
"""

from __future__ import annotations

import ctypes as c
from dataclasses import dataclass

import numpy as np

from weir.trace._abi import NO_ROW, PATH_PIECE, Replayed, ReplayRun, replay_functions

NOBODY = NO_ROW


def _rows_of(keys: np.ndarray, count: int) -> np.ndarray:
    """Where the rows of each key begin and end; keys rise."""
    made = np.zeros(count + 1, np.uint32)
    np.cumsum(np.bincount(keys, minlength=count), out=made[1:], dtype=np.uint32)
    return made


@dataclass(frozen=True)
class Path:
    """The critical path, the last piece first. Arrays by piece: an operation from the start of
    `before` (itself when it waited for nobody) to its end, and the time in front of `before`, of
    whose I/O the share `price` counts in what the run would save."""

    op: np.ndarray
    before: np.ndarray
    price: np.ndarray


@dataclass(frozen=True)
class Finish:
    """When the run ended, and when it would have ended. not_followed: waits for what had not begun
    when the wait ended."""

    finish_ns: int
    replayed_ns: int
    not_followed: int
    path: Path

    @property
    def saved_ns(self) -> int:
        return self.finish_ns - self.replayed_ns


class Replay:
    """Operations in the order of strand and time.

    joins: pairs of an operation and the collective to which it comes when it starts; waits: pairs
    of an operation and what it waits for, another operation's start, or the complement of a
    collective: all who have come to it when the operation ends. start_ns and end_ns are changed
    where operations of a strand overlap. Raises MemoryError.
    """

    def __init__(
        self, strand: np.ndarray, start_ns: np.ndarray, end_ns: np.ndarray,
        joins: tuple[np.ndarray, np.ndarray], waits: tuple[np.ndarray, np.ndarray], instances: int,
    ):  # fmt: skip
        count = len(strand)
        strands = int(strand[-1]) + 1 if count else 0
        if max(count, len(joins[0]), len(waits[0])) >= 2**31:
            raise MemoryError("no memory to replay the run")
        self.strand = np.ascontiguousarray(strand, np.int32)
        self.start_ns, self.end_ns = (np.ascontiguousarray(one, np.int64)
            for one in (start_ns, end_ns))
        self._arrays = (
            self.start_ns, self.end_ns, _rows_of(strand, strands),
            *_by_op(*joins, count, np.uint32), *_by_op(*waits, count, np.int32),
        )  # fmt: skip
        pointers = (one.ctypes.data for one in self._arrays)
        self._run = ReplayRun(count, strands, instances, *pointers)
        self._order = np.empty(2 * count, np.uint32)
        if replay_functions()[0](c.byref(self._run), self._order.ctypes.data):
            raise MemoryError("no memory to replay the run")

    def __len__(self) -> int:
        return len(self.strand)

    def gaps(self) -> tuple[np.ndarray, np.ndarray]:
        """Begin and end of the time in front of each operation, behind the one before it."""
        begins = np.r_[self.start_ns[:1], self.end_ns[:-1]]
        is_first = np.r_[True, np.diff(self.strand) != 0][: len(self)]
        return np.where(is_first, self.start_ns, begins[: len(self)]), self.start_ns

    def awaited(self) -> np.ndarray:
        """Of each operation the one whose start it waited for longest, NOBODY where for none."""
        found = np.full(len(self), NOBODY, np.uint32)
        made = Replayed(awaited=found.ctypes.data)
        self._made(np.zeros(len(self), np.int64), made)
        return found

    def _made(self, free_ns: np.ndarray, made: Replayed) -> None:
        order = self._order.ctypes.data
        if replay_functions()[1](c.byref(self._run), order, free_ns.ctypes.data, c.byref(made)):
            raise MemoryError("no memory to replay the run")

    def run(self, free_ns: np.ndarray, with_path: bool = False) -> Finish:
        """free_ns: how much of the time in front of each operation costs nothing."""
        pieces = np.empty(len(self) if with_path else 0, PATH_PIECE)
        made = Replayed(path=pieces.ctypes.data if with_path else None)
        self._made(np.ascontiguousarray(free_ns, np.int64), made)
        pieces = pieces[: made.path_length]
        path = Path(*(pieces[name].copy() for name in ("op", "before", "price")))
        if not len(self):
            return Finish(0, 0, 0, path)
        return Finish(made.finish_ns, made.replayed_finish_ns, made.not_followed, path)


def _by_op(ops: np.ndarray, of: np.ndarray, count: int, kind: type) -> tuple[np.ndarray, ...]:
    """Where the rows of each operation begin, and the rows."""
    first = _rows_of(ops, count)
    return first, of[np.argsort(ops, kind="stable")].astype(kind)
