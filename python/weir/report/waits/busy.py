# SPDX-License-Identifier: Apache-2.0
"""When a rank is in I/O, asked at timestamps that are known before: a pass over its calls with some
of them in memory at a time.

Chunks are read in the order in which their first calls begin. What lies before the first call of
the next chunk is then complete: it is answered and forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from weir.analysis.intervals import Union
from weir.analysis.names import NameTable
from weir.analysis.step import StepData
from weir.report.waits.records import Threads, calls_by_begin

ROOM_BLOCKS = 1 << 17  # that wait to be joined with those before them
_NEVER, _EVER = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@dataclass(frozen=True)
class Busy:
    """The union of a rank's I/O up to each of some timestamps (rising, ns): how long it is, and
    where its last interval before them ends, cut there."""

    timestamps: np.ndarray
    lengths: np.ndarray
    lasts: np.ndarray

    def until(self, timestamps: np.ndarray) -> np.ndarray:
        """Length of the union up to each timestamp. Raises KeyError for a timestamp that was not
        named before."""
        return self.lengths[self._at(timestamps)]

    def within(self, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Length of the union within each window."""
        return self.until(ends) - self.until(begins)

    def last_end(self, timestamps: np.ndarray) -> np.ndarray:
        """End of the last I/O that began before each timestamp, the timestamp itself when it lasted
        longer; long ago when there was none."""
        return self.lasts[self._at(timestamps)]

    def _at(self, timestamps: np.ndarray) -> np.ndarray:
        at = np.searchsorted(self.timestamps, timestamps)
        if len(at) and (at.max() >= len(self.timestamps) or not np.array_equal(self.timestamps[at],
                timestamps)):
            raise KeyError("timestamps that nobody named when the calls were read")
        return at


def busy_at(
    data: StepData, names: NameTable, members: Iterable[int], *timestamps: np.ndarray,
    without: Threads | None = None,
) -> Busy:  # fmt: skip
    """The I/O on files of some members (one rank) at these timestamps, without some of their
    threads. cost: a pass over their records, when there are timestamps."""
    asked = np.unique(np.concatenate(timestamps)) if timestamps else np.empty(0, np.int64)
    lengths, lasts = np.zeros(len(asked), np.int64), np.full(len(asked), _NEVER)
    done, before, last = 0, 0, _NEVER
    for union, limit in unions(data, members, names, without) if len(asked) else ():
        upto = int(np.searchsorted(asked, limit, "right"))
        some = slice(done, upto)
        lengths[some] = before + union.until(asked[some])
        at = np.searchsorted(union.begins, asked[some], "left") - 1
        if len(union.begins):
            lasts[some] = np.where(at >= 0, np.minimum(union.ends[at], asked[some]), last)
            before, last = before + int((union.ends - union.begins).sum()), int(union.ends[-1])
        else:
            lasts[some] = last
        done = upto
    return Busy(asked, lengths, lasts)


def unions(
    data: StepData, members: Iterable[int], names: NameTable, without: Threads | None = None
) -> Iterator[tuple[Union, int]]:
    """The union of all I/O on files as stretches of time that follow one another, and the end of
    each stretch; the last has none."""
    kept, waiting, count = Union.of(*(np.empty(0, np.int64),) * 2), [], 0
    for calls, limit in calls_by_begin(data, members, names, without):
        if calls is not None:
            waiting.append(Union.of(calls.start, calls.end))
            count += len(waiting[-1].begins)
        if count > max(ROOM_BLOCKS, len(kept.begins)):
            done, kept = _joined(kept, waiting).cut(limit)
            waiting, count = [], 0
            yield done, limit
    yield _joined(kept, waiting), _EVER


def _joined(kept: Union, waiting: list[Union]) -> Union:
    parts = [kept, *waiting]
    return Union.of(*(np.concatenate([getattr(one, side) for one in parts])
        for side in ("begins", "ends")))
