# SPDX-License-Identifier: Apache-2.0
"""Which stretches of ranks in a phase are one time of it, for phases that begin at files.

Under ROMIO and PnetCDF not every rank opens every file: the k-th file of one rank is not the k-th
of another. Stretches belong together when they begin at the same file and overlap; where each rank
has a file of its own, when they overlap.
"""

from __future__ import annotations

import numpy as np


def times_by_file(
    phase: np.ndarray, program: np.ndarray, location: np.ndarray, file: np.ndarray,
    begin: np.ndarray, end: np.ndarray, nth: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Arrays by stretch; file: the number of its name, -1 when it begins elsewhere; nth: which time
    it is by count, the answer for phases that begin at no file."""
    at = np.flatnonzero(np.isin(phase, np.unique(phase[file >= 0])))
    if not len(at):
        return nth
    key = np.where(_is_shared(phase[at], program[at], location[at], file[at]), file[at], -1)
    by = np.lexsort((begin[at], key, program[at], phase[at]))
    order = at[by]
    columns = (one[order] for one in (phase, program, location, begin, end))
    groups = _groups(key[by], *columns)
    return _numbered(nth, order, groups, phase, program, begin)


def _is_shared(
    phase: np.ndarray, program: np.ndarray, location: np.ndarray, file: np.ndarray
) -> np.ndarray:
    """Whether several ranks begin the phase at the file."""
    _, of_file = np.unique(np.stack([phase, program, file]), axis=1, return_inverse=True)
    of_file = of_file.ravel()
    pairs = np.unique(np.stack([of_file, location]), axis=1)
    return np.bincount(pairs[0], minlength=int(of_file.max()) + 1)[of_file] > 1


def _groups(*columns: np.ndarray) -> np.ndarray:
    """The number of the group of each stretch: a new one where nothing of the last one is open any
    more, or where its rank is in it already."""
    made, number, last_key, open_until = [], -1, None, 0
    ranks: set[int] = set()
    for key, phase, program, location, begin, end in zip(*(one.tolist() for one in columns)):
        is_new = (phase, program, key) != last_key or begin >= open_until or location in ranks
        if is_new:
            number, last_key, open_until, ranks = number + 1, (phase, program, key), end, set()
        ranks.add(location)
        open_until = max(open_until, end)
        made.append(number)
    return np.array(made, np.int64)


def _numbered(
    nth: np.ndarray, order: np.ndarray, groups: np.ndarray, phase: np.ndarray,
    program: np.ndarray, begin: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Groups of a phase and program counted from 0, in the order in which they begin."""
    first = np.flatnonzero(np.r_[True, np.diff(groups) != 0])
    rows = order[first]
    by_begin = np.lexsort((begin[rows], program[rows], phase[rows]))
    rows = rows[by_begin]
    is_first = np.r_[True, (np.diff(phase[rows]) != 0) | (np.diff(program[rows]) != 0)]
    at = np.flatnonzero(is_first)
    number = np.arange(len(rows)) - np.repeat(at, np.diff(np.r_[at, len(rows)]))
    of_group = np.empty(len(rows), np.int64)
    of_group[by_begin] = number
    found = nth.copy()
    found[order] = of_group[groups]
    return found


def covered(phase: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Of each phase how long any of its times lasts. before: phases rise."""
    limits = np.flatnonzero(np.r_[True, np.diff(phase) != 0, True])
    made = np.maximum(end - begin, 0)[limits[:-1]]  # of those with one time
    for at in np.flatnonzero(np.diff(limits) > 1).tolist():
        low, high = limits[at : at + 2]
        order = low + np.argsort(begin[low:high], kind="stable")
        reach = np.maximum.accumulate(end[order])
        since = np.maximum(begin[order], np.r_[begin[order[:1]], reach[:-1]])
        made[at] = np.maximum(reach - since, 0).sum()
    return made
