# SPDX-License-Identifier: Apache-2.0
"""What differs between the ranks of a file: how many they are, the fastest and the slowest, how far
their time and bytes lie apart, whose ranges of bytes interleave. Accumulated node by node, without
a row for each rank and file.

Deviations of parts are combined as by T. F. Chan, G. H. Golub and R. J. LeVeque, Updating formulae
and a pairwise algorithm for computing sample variances, 1979.
"""

from __future__ import annotations

import numpy as np

from weir.analysis.columns import grouped, starts

_FOLDED_AT_ONCE = 1 << 16  # rows of files that wait to be combined
_NO_NUMBERS = np.zeros(0, np.int64)
ROW = np.dtype([("name", "<i4"), ("way", "i1"), ("rank", "<i4"), ("node", "<i4"), ("ns", "<i8"),
    ("bytes", "<i8"), ("begin", "<i8"), ("end", "<i8")])  # fmt: skip
# Of a file and direction. mean_, squares_: of the ranks' sums, and squares of the distances to it.
FILE = np.dtype([("name", "<i4"), ("way", "i1"), ("ranks", "<i8"), ("interleaved", "<i8"),
    ("fastest_rank", "<i8"), ("fastest_ns", "<i8"), ("slowest_rank", "<i8"), ("slowest_ns", "<i8"),
    ("mean_ns", "<f8"), ("squares_ns", "<f8"), ("mean_bytes", "<f8"),
    ("squares_bytes", "<f8")])  # fmt: skip


class OfRanks:
    """apart: names whose rows are kept until it is known which file they are of; loose: numbers of
    ranks whose rows are kept until all are there."""

    def __init__(self, apart: np.ndarray = _NO_NUMBERS, loose: np.ndarray = _NO_NUMBERS):
        self._apart, self._loose = apart, loose
        self._rows: list[np.ndarray] = []
        self._files: list[np.ndarray] = []
        self._waiting = self._folded = 0

    @property
    def kept_rows(self) -> int:
        """How many rows of a rank and file, and of a file, are in memory."""
        return sum(map(len, self._rows)) + sum(map(len, self._files))

    def add(self, columns: dict[str, np.ndarray]) -> None:
        """Rows of a rank, file and direction of one node; those of several processes of a rank are
        of one."""
        rows = np.empty(len(columns["name"]), ROW)
        for key in ROW.names or ():
            rows[key] = columns[key]
        is_apart = np.isin(rows["name"], self._apart)
        is_loose = np.isin(rows["rank"], self._loose) & ~is_apart
        files = _interleaved(rows[~is_apart])
        self._keep(rows[is_apart | is_loose])
        self._file(_of_files(rows[~is_apart & ~is_loose]), files[files["interleaved"] > 0])

    def _keep(self, rows: np.ndarray) -> None:
        if len(rows):
            self._rows.append(rows)

    def _file(self, *parts: np.ndarray) -> None:
        self._files += [part for part in parts if len(part)]
        self._waiting += sum(map(len, parts))
        if self._waiting > max(_FOLDED_AT_ONCE, self._folded):
            self._files = [_combined(np.concatenate(self._files))]
            self._waiting, self._folded = 0, len(self._files[0])

    def files(self, last_name: np.ndarray | None = None) -> np.ndarray:
        """A row (FILE) for each file and direction, in the order of both. last_name: of the names
        that were kept apart, where rows of several may be of one file: a row for each number."""
        parts = [np.zeros(0, FILE), *self._files]
        if self._rows:
            rows = np.concatenate(self._rows)
            is_apart = np.isin(rows["name"], self._apart)
            if last_name is not None:
                rows["name"] = last_name[rows["name"]]
            of_apart = _interleaved(rows[is_apart])
            parts += [_of_files(rows), of_apart[of_apart["interleaved"] > 0]]
        return _combined(np.concatenate(parts))


def _of_files(rows: np.ndarray) -> np.ndarray:
    """Figures of the files of some ranks."""
    if not len(rows):
        return np.zeros(0, FILE)
    order, first = grouped(rows["name"], rows["way"], rows["rank"])
    of = {key: rows[key][order[first]] for key in ("name", "way", "rank")}
    of |= {key: np.add.reduceat(rows[key][order], first) for key in ("ns", "bytes")}
    begins = starts(of["name"], of["way"])
    made = np.zeros(len(begins), FILE)
    made["name"], made["way"] = of["name"][begins], of["way"][begins]
    made["ranks"] = count = np.diff(np.r_[begins, len(of["name"])])
    of_file = np.repeat(np.arange(len(begins)), count)
    for which, sign in (("fastest", 1), ("slowest", -1)):  # of equal ones the lowest rank
        at = np.lexsort((of["rank"], sign * of["ns"], of_file))[begins]
        made[f"{which}_rank"], made[f"{which}_ns"] = of["rank"][at], of["ns"][at]
    for key in ("ns", "bytes"):
        made[f"mean_{key}"] = mean = np.add.reduceat(of[key], begins) / count
        made[f"squares_{key}"] = np.add.reduceat((of[key] - mean[of_file]) ** 2, begins)
    return made


def _combined(parts: np.ndarray) -> np.ndarray:
    """Rows of one file and direction become one. Rows without ranks have what interleaves alone."""
    if not len(parts):
        return parts
    order, begins = grouped(parts["name"], parts["way"])
    parts = parts[order]
    made = parts[begins]
    of_file = np.repeat(np.arange(len(begins)), np.diff(np.r_[begins, len(parts)]))
    for key in ("ranks", "interleaved"):
        made[key] = np.add.reduceat(parts[key], begins)
    has_none = parts["ranks"] == 0
    for which, sign in (("fastest", 1), ("slowest", -1)):
        at = np.lexsort((parts[f"{which}_rank"], sign * parts[f"{which}_ns"], has_none, of_file))
        for key in ("rank", "ns"):
            made[f"{which}_{key}"] = parts[f"{which}_{key}"][at[begins]]
    count = np.maximum(made["ranks"], 1)
    for key in ("ns", "bytes"):
        mean = np.add.reduceat(parts[f"mean_{key}"] * parts["ranks"], begins) / count
        apart = parts["ranks"] * (parts[f"mean_{key}"] - mean[of_file]) ** 2
        made[f"mean_{key}"] = mean
        made[f"squares_{key}"] = np.add.reduceat(parts[f"squares_{key}"] + apart, begins)
    is_alone = np.diff(np.r_[begins, len(parts)]) == 1  # as it was, to the last bit
    made[is_alone] = parts[begins[is_alone]]
    return made


def _interleaved(rows: np.ndarray) -> np.ndarray:
    """Of each file and direction: ranks whose range of bytes begins before that of another rank of
    their node ends, and the other way round. Nothing else is filled in."""
    has_place = np.flatnonzero(rows["end"] > rows["begin"])
    if not len(has_place):
        return np.zeros(0, FILE)
    rows = rows[has_place]
    rows = rows[np.lexsort([rows[key] for key in ("begin", "node", "way", "name")])]
    begins = starts(rows["name"], rows["way"], rows["node"])
    of = np.repeat(np.arange(len(begins)), np.diff(np.r_[begins, len(rows)]))
    rank = rows["rank"]
    is_several = (np.minimum.reduceat(rank, begins) != np.maximum.reduceat(rank, begins))[of]
    # Places of bytes as small numbers, so that one rising sequence has those of all groups.
    places = np.unique(np.r_[rows["begin"], rows["end"]])
    begin, end = (np.searchsorted(places, rows[key]) for key in ("begin", "end"))
    first = of * (len(places) + 1)
    before = np.r_[-1, np.maximum.accumulate(first + end)[:-1]] - first  # below 0: of another group
    is_next = np.r_[of[1:] == of[:-1], False]
    is_mixed = (begin < before) | (is_next & (np.r_[begin[1:], 0] < end))
    mixed = np.flatnonzero(is_mixed & is_several)
    groups = np.unique(np.stack((of[mixed], rank[mixed])), axis=1)[0]
    made = np.zeros(len(begins), FILE)
    made["name"], made["way"] = rows["name"][begins], rows["way"][begins]
    np.add.at(made["interleaved"], groups, 1)
    return made
