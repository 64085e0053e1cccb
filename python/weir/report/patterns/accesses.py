# SPDX-License-Identifier: Apache-2.0
"""How files of a step are accessed, joined from its trace files, so that memory grows with the
files and not with the files of each rank or node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from weir.analysis.columns import grouped, starts
from weir.report.patterns.commons import CommonValues, OfWay
from weir.report.patterns.spread import OfRanks, SpreadOfRanks

SUMMED = (
    "calls bytes sequential consecutive first adjacent strided backward random unknown off_block "
    "off_stripe ns again"
).split()
_FOLDED_AT_ONCE = 1 << 15  # rows of files that wait to be added up
_KEYS = (*SUMMED, "begin", "end", "name", "rank", "way", "node", "switches", "longest_ns", "block",
         "stripe")  # fmt: skip
_HOW = {"begin": np.minimum, "end": np.maximum, "longest_ns": np.maximum} | {
    key: np.add for key in (*SUMMED, "switches")
}


@dataclass(frozen=True)
class Accesses:
    """Columns of one length: transfers of one direction (way) on one file by one rank of one node,
    or by all ranks. commons: rows of (index of a row here, kind, value, count). ranks: what differs
    between ranks then."""

    columns: dict[str, np.ndarray]
    commons: np.ndarray
    ranks: OfRanks = field(default_factory=OfRanks)

    def __len__(self) -> int:
        return len(self.columns["name"])


class Joining:
    """Parts of a step, of one trace file and way each. by_rank: whether their rows stay apart.
    apart: names whose files have other names, too, so that their ranks are not known before; loose:
    numbers of ranks that have processes in several trace files, likewise."""

    def __init__(self, by_rank: bool, apart: np.ndarray, loose: np.ndarray):
        self._by_rank = by_rank
        self._columns: list[dict[str, np.ndarray]] = []
        self._ranks = SpreadOfRanks(apart, loose)
        self._of_rows: list[np.ndarray] = []  # common values
        self._commons = CommonValues()
        self._rows = self._waiting = self._folded = 0

    @property
    def takes_few(self) -> bool:
        """Whether the few most common values of a file are enough of the next trace files."""
        return self._commons.is_full

    def add(self, columns: dict[str, np.ndarray], commons: OfWay) -> None:
        if self._by_rank:
            of_rows = commons.by_row()
            of_rows[:, 0] += self._rows
            self._of_rows.append(of_rows)
        elif len(columns["name"]):
            self._ranks.add(columns)
            self._commons.add(commons)
            columns = _by_file(columns)
        self._columns.append(columns)
        self._rows += len(columns["name"])
        self._waiting += len(columns["name"])
        if not self._by_rank and self._waiting > max(_FOLDED_AT_ONCE, self._folded):
            self._columns = [_by_file(_concatenated(self._columns, _KEYS))]
            self._waiting, self._folded = 0, len(self._columns[0]["name"])

    def joined(self) -> Accesses:
        columns = _concatenated(self._columns, _KEYS)
        if self._by_rank:
            return Accesses(columns, np.concatenate([np.zeros((0, 4), np.int64), *self._of_rows]))
        if len(columns["name"]):
            columns = _by_file(columns)
        commons = self._commons.values()
        commons[:, 0] = np.searchsorted(_key(columns), commons[:, 0])
        return Accesses(columns, commons, self._ranks.found())


def _key(columns: dict[str, np.ndarray]) -> np.ndarray:
    """Of a file and way."""
    return columns["name"].astype(np.int64) << 1 | columns["way"]


def _concatenated(parts: list[dict[str, np.ndarray]], keys: Iterable[str]) -> dict[str, np.ndarray]:
    """Column by column; the parts lose theirs."""
    return {key: np.concatenate([np.zeros(0, np.int64 if len(parts) == 0 else parts[0][key].dtype),
        *(part.pop(key) for part in parts)]) for key in keys}


def _by_file(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The rows of each file and way added up, in the order of both."""
    order, begins = grouped(columns["name"], columns["way"])
    return {
        key: _HOW[key].reduceat(column[order], begins) if key in _HOW else column[order[begins]]
        for key, column in columns.items()
    }
