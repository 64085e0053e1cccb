# SPDX-License-Identifier: Apache-2.0
"""When a rank is in I/O, asked at timestamps that are known before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from weir.analysis.lines import LineOf, lengths_and_lasts, rising
from weir.analysis.names import NameTable
from weir.analysis.step import StepData


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
    data: StepData, names: NameTable, members: Iterable[int], *timestamps: np.ndarray
) -> Busy:
    """The I/O on files of some members (one rank), all threads, at these timestamps. cost: a pass
    over their records, when there are timestamps."""
    asked = rising(*timestamps)
    return Busy(asked, *lengths_and_lasts(data, LineOf(tuple(members)), asked))
