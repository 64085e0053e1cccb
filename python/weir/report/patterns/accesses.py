# SPDX-License-Identifier: Apache-2.0
"""How files of a step are accessed, joined from its trace files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from weir.analysis.columns import starts

SUMMED = (
    "calls bytes sequential consecutive first adjacent strided backward random unknown off_block "
    "off_stripe ns again"
).split()
_FOLDED_AT_ONCE = 1 << 18  # common values
OF_RANKS = {"name": np.int32, "way": np.int8, "rank": np.int32, "node": np.int32, "ns": np.int64,
            "bytes": np.int64, "begin": np.int64, "end": np.int64}  # fmt: skip
_KEYS = (*SUMMED, "begin", "end", "name", "rank", "way", "node", "switches", "longest_ns", "block",
         "stripe")  # fmt: skip


@dataclass(frozen=True)
class Accesses:
    """Columns of one length: transfers of one direction (way) on one file by one rank of one node,
    or by all of its ranks. commons: rows of (index of a row here, kind, value, count), where a row
    stands for all rows of its file and way when these are of all ranks. ranks: what differs between
    ranks then, columns of one length: a row for each."""

    columns: dict[str, np.ndarray]
    commons: np.ndarray
    ranks: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.columns["name"])


class Joining:
    """Parts of a step, of one trace file and way each. by_rank: whether their rows stay apart;
    otherwise those of a file are added up, and common values of all nodes are counted together, so
    that memory grows with the files of nodes and not with those of ranks."""

    def __init__(self, by_rank: bool):
        self._by_rank = by_rank
        self._columns: list[dict[str, np.ndarray]] = []
        self._ranks: list[dict[str, np.ndarray]] = []
        self._commons: list[np.ndarray] = []  # with the key of a file and way, or a row
        self._rows = self._waiting = self._folded = 0

    def add(self, columns: dict[str, np.ndarray], commons: np.ndarray) -> None:
        if self._by_rank:
            commons[:, 0] += self._rows
            self._commons.append(commons)
        elif len(columns["name"]):
            self._ranks.append({key: columns[key].astype(kind)
                for key, kind in OF_RANKS.items()})
            commons[:, 0] = (columns["name"].astype(np.int64) << 1 | columns["way"])[commons[:, 0]]
            self._count(commons)
            columns = _by_file(columns)
        self._columns.append(columns)
        self._rows += len(columns["name"])

    def _count(self, commons: np.ndarray) -> None:
        self._commons.append(commons)
        self._waiting += len(commons)
        if self._waiting > max(_FOLDED_AT_ONCE, self._folded):
            self._fold()

    def _fold(self) -> None:
        every = np.concatenate([np.zeros((0, 4), np.int64), *self._commons])
        self._commons = []
        if len(every):
            every = every[np.lexsort((every[:, 2], every[:, 1], every[:, 0]))]
            begins = starts(*every.T[:3])
            counts = np.add.reduceat(every[:, 3], begins)
            every = np.c_[every[begins, :3], counts]
        self._commons, self._folded, self._waiting = [every], len(every), 0

    def joined(self) -> Accesses:
        columns, ranks = _concatenated(self._columns, _KEYS), _concatenated(self._ranks, OF_RANKS)
        if self._by_rank:
            return Accesses(columns, np.concatenate([np.zeros((0, 4), np.int64), *self._commons]),
                ranks)
        self._fold()
        [commons] = self._commons
        keys, first = np.unique(columns["name"] << 1 | columns["way"], return_index=True)
        commons[:, 0] = first[np.searchsorted(keys, commons[:, 0])]
        return Accesses(columns, commons, ranks)


def _concatenated(parts: list[dict[str, np.ndarray]], keys: Iterable[str]) -> dict[str, np.ndarray]:
    """Column by column; the parts lose theirs."""
    return {key: np.concatenate([np.zeros(0, np.int64 if len(parts) == 0 else parts[0][key].dtype),
        *(part.pop(key) for part in parts)]) for key in keys}


def _by_file(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The rows of one way of one node, those of each file added up."""
    order = np.argsort(columns["name"], kind="stable")
    begins = starts(columns["name"][order])
    how = {"begin": np.minimum, "end": np.maximum, "longest_ns": np.maximum}
    how |= {key: np.add for key in (*SUMMED, "switches")}
    return {
        key: how[key].reduceat(column[order], begins) if key in how else column[order[begins]]
        for key, column in columns.items()
    }
