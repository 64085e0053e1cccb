# SPDX-License-Identifier: Apache-2.0
"""Which calls on files layer keep would answer: its state (native/layers/keep/README.md) replayed
over the records of a step. Decides nothing about what is worth a rule.

An answer is remembered for a name by each process, for a second, until any process opens or closes
a file for writing or changes a name. An open is served where the process closed the file before."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from weir.advise.frame.openings import (
    CHANGES, CLOSES, OPENS, QUERIES, Calls, calls_of, mask_of
)  # fmt: skip
from weir.analysis.columns import starts
from weir.report.frame.build import StepReport

VALID_NS = 1_000_000_000
PLACES = 250  # files that stay open
_OF_LSTAT, _OF_STAT, _OF_ACCESS = 3, 2, 1  # a higher one also tells what a lower one asks


@dataclass
class Answered:
    """Of one file over all steps. opens: answered; queries: the fewest and the most of them; ns:
    likewise, of all that is answered; whole_ns: of all that the layer might answer."""

    opens: int = 0
    queries: tuple[int, int] = (0, 0)
    ns: tuple[float, float] = (0.0, 0.0)
    whole_ns: int = 0


def answered(steps: Collection[StepReport], numbers: Mapping[str, int], written: np.ndarray,
        holds: Mapping[str, bool]) -> dict[str, Answered]:
    """By path. numbers: of the names; written: of all files that are written; holds: by path
    whether the layer holds the file open after its close."""
    paths = list(numbers)
    found = {path: Answered() for path in paths}
    is_held = np.array([holds[path] for path in paths], bool)
    for step in steps:
        calls = calls_of(step.data, np.array([numbers[path] for path in paths]), written,
            (*OPENS, *CLOSES, *QUERIES, *CHANGES))
        _add_opens(found, paths, is_held, calls)
        _add_queries(found, paths, calls)
    return found


def _add_opens(found: dict[str, Answered], paths: list[str], is_held: np.ndarray,
        calls: Calls) -> None:
    """Of a process, all opens of a file but as many as it had open at once, and as often as the
    name was changed between; the same number of closes."""
    table = np.where(mask_of(OPENS), 1, 0) - np.where(mask_of(CLOSES), 1, 0)
    table = np.where(mask_of(CHANGES), 2, table)
    own = calls.where((calls.file >= 0) & (table[calls.op] != 0))
    if not len(own):
        return
    own = own.where(np.lexsort((own.start, own.file, own.member)))
    kind, begins = table[own.op], starts(own.member, own.file)
    users = np.bincount(own.file[begins], minlength=len(paths))
    files_of = np.bincount(own.member[begins])
    changed = np.sort(calls.where(mask_of(CHANGES)[calls.op]).start)
    ends = np.r_[begins[1:], len(own)]
    opened = np.add.reduceat((kind == 1).astype(int), begins)
    whole = np.bincount(own.file, own.ns * (kind != 2), len(paths)).astype(int).tolist()
    for path, ns in zip(paths, whole):
        found[path].whole_ns += ns
    again = opened > 1
    for begin, end in zip(begins[again].tolist(), ends[again].tolist()):
        file, steps = int(own.file[begin]), kind[begin:end]
        opens, closes = (steps == 1), (steps == -1)
        one = found[paths[file]]
        deepest = int(np.cumsum(opens.astype(int) - closes).max(initial=0))
        served = int(opens.sum()) - max(1, deepest) - int((steps == 2).sum())
        is_shared = bool(own.is_written[begin]) and users[file] > 1
        if not is_held[file] or is_shared or served <= 0:
            continue
        count = int(files_of[own.member[begin]])
        served = served * min(PLACES, count) // count
        share = served / int(opens.sum())
        fresh_ns = own.ns[begin:end][opens & ~_are_stale(own, begin, end, changed)].sum()
        ns = share * (fresh_ns + own.ns[begin:end][closes].sum())
        one.opens += served
        one.ns = (one.ns[0] + ns, one.ns[1] + ns)


def _are_stale(own: Calls, begin: int, end: int, changed: np.ndarray) -> np.ndarray:
    """Calls on a file before which the layer compares its name by a stat, which takes as long as an
    open: a second after the last call, and when a name was changed since."""
    start = own.start[begin:end]
    last = np.r_[start[0], (own.start + own.ns)[begin : end - 1]]
    known = [np.searchsorted(changed, one) for one in (last, start)]
    return (start - last > VALID_NS) | (known[0] != known[1])


def _add_queries(found: dict[str, Answered], paths: list[str], calls: Calls) -> None:
    moves = mask_of((*OPENS, *CLOSES))[calls.op]
    changed = calls.where(mask_of(CHANGES)[calls.op] | (moves & calls.is_written))
    mask = (calls.file >= 0) & mask_of(QUERIES)[calls.op]
    asked, is_being_written = calls.where(mask), _are_being_written(calls)[mask]
    if not len(asked):
        return
    epoch = np.searchsorted(np.sort(changed.start + changed.ns), asked.start, "right")
    order = np.lexsort((asked.start, epoch, asked.file, asked.member))
    asked, epoch, is_being_written = asked.where(order), epoch[order], is_being_written[order]
    begins = starts(asked.member, asked.file, epoch)
    first = np.repeat(asked.start[begins], np.diff([*begins, len(asked)]))
    begins = starts(asked.member, asked.file, epoch, (asked.start - first) // VALID_NS)
    group = np.repeat(np.arange(len(begins)), np.diff([*begins, len(asked)]))
    tells = np.full(256, _OF_STAT)
    tells[mask_of(("lstat",))], tells[mask_of(("access",))] = _OF_LSTAT, _OF_ACCESS
    level = tells[asked.op]
    most = np.zeros(len(level), bool)
    for need in (_OF_ACCESS, _OF_STAT, _OF_LSTAT):
        most |= (level == need) & _has_before(level >= need, begins, group)
    most &= ~is_being_written
    # After stat alone only an access that asks no more than whether the name is there is answered.
    is_access = level == _OF_ACCESS
    least = most & (~is_access | _has_before(is_access, begins, group))
    whole, *ns = (np.bincount(asked.file, asked.ns * one, len(paths)).tolist()
        for one in (np.ones(len(level), bool), least, most))
    fewest, greatest = (np.bincount(asked.file, one, len(paths)).astype(int).tolist()
        for one in (least, most))
    for at, path in enumerate(paths):
        one = found[path]
        one.whole_ns += int(whole[at])
        one.queries = (one.queries[0] + fewest[at], one.queries[1] + greatest[at])
        one.ns = (one.ns[0] + ns[0][at], one.ns[1] + ns[1][at])


def _are_being_written(calls: Calls) -> np.ndarray:
    """Whether the file is open, of those that are written."""
    step = np.where(mask_of(OPENS), 1, 0) - np.where(mask_of(CLOSES), 1, 0)
    order = np.lexsort((calls.start, calls.file))
    depth = np.cumsum(step[calls.op[order]])
    begins = starts(calls.file[order]) if len(order) else np.zeros(0, np.int64)
    before = np.r_[0, depth][begins]
    made = np.zeros(len(order), bool)
    made[order] = depth - np.repeat(before, np.diff([*begins, len(order)])) > 0
    return made & calls.is_written


def _has_before(mask: np.ndarray, begins: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Whether the mask has an earlier one of the same group."""
    places = np.where(mask, np.arange(len(mask)), len(mask))
    return np.arange(len(mask)) > np.minimum.reduceat(places, begins)[group]
