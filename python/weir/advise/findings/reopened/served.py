# SPDX-License-Identifier: Apache-2.0
"""Which calls on files layer keep would answer: its state (native/layers/keep/README.md) replayed
over the records of a step. Decides nothing about what is worth a rule.

An answer is remembered for a name by each process, for a second, until any process opens or closes
a file for writing or changes a name. An open is served where the process closed the file before."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields

import numpy as np

from weir.analysis.columns import starts
from weir.analysis.remote import pass_over_records
from weir.analysis.step import StepData
from weir.report.frame.build import StepReport
from weir.trace.events import read_events
from weir.trace.file import LOST
from weir.trace.ops import ERROR, POSIX, STDIO, ops

OPENS = ("open", "openat", "creat", "fopen", "freopen")
CLOSES = ("close", "fclose")
QUERIES = ("stat", "lstat", "fstatat", "access")  # statx and faccessat pass
CHANGES = ("rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat", "remove",
    "truncate", "chmod", "chown", "utime", "setxattr", "removexattr")  # fmt: skip
VALID_NS = 1_000_000_000
PLACES = 250  # files that stay open
_OF_LSTAT, _OF_STAT, _OF_ACCESS = 3, 2, 1  # a higher one also tells what a lower one asks


@dataclass(frozen=True)
class Calls:
    """Records of one step, arrays of one length. file: index among the files that are asked for, -1
    another one, or none."""

    member: np.ndarray
    file: np.ndarray
    op: np.ndarray
    start: np.ndarray
    ns: np.ndarray
    is_written: np.ndarray  # whether any process writes the file

    def __len__(self) -> int:
        return len(self.op)

    def where(self, mask: np.ndarray) -> Calls:
        return Calls(*(getattr(self, one.name)[mask] for one in fields(self)))


@dataclass
class Answered:
    """Of one file over all steps. opens: answered; queries: the fewest and the most of them; ns:
    likewise, of all that is answered; whole_ns: of all that the layer might answer."""

    opens: int = 0
    queries: tuple[int, int] = (0, 0)
    ns: tuple[float, float] = (0.0, 0.0)
    whole_ns: int = 0


def _mask(names: Collection[str]) -> np.ndarray:
    table = np.zeros(256, bool)
    table[[value for value, one in ops().items()
        if one.name in names and one.layer in (POSIX, STDIO)]] = True
    return table


@pass_over_records
def calls_of(data: StepData, files: np.ndarray, written: np.ndarray) -> Calls:
    """Of a step, in the order of their beginnings, those that succeeded. files: numbers of names;
    written: likewise of all that are written. cost: a pass over the records."""
    wanted = _mask((*OPENS, *CLOSES, *QUERIES, *CHANGES))
    place = {number: at for at, number in enumerate(files.tolist())}
    changes, parts = _mask(CHANGES), []
    for index, file in enumerate(data.files):
        numbers, first = data.name_numbers[index], data.first_member(index)
        of_text = np.array([place.get(one, -1) for one in numbers.tolist()] or [-1], np.int64)
        writes = np.isin(numbers, written) if len(numbers) else np.zeros(1, bool)
        for events in read_events(file, data.lines[index].native(), wanted=wanted):
            known = events["text"] != LOST
            text = np.where(known, events["text"], 0).astype(np.int64)
            at, is_written = np.where(known, of_text[text], -1), known & writes[text]
            kept = (events["flags"] & ERROR) == 0
            kept &= (at >= 0) | is_written | changes[events["op"]]
            parts.append(Calls(events["process"].astype(np.int64)[kept] + first, at[kept],
                events["op"][kept], events["start_ns"].astype(np.int64)[kept],
                events["duration_ns"].astype(np.int64)[kept], is_written[kept]))
    if not parts:
        return Calls(*(np.zeros(0, kind) for kind in (np.int64, np.int64, np.uint8, np.int64,
            np.int64, bool)))
    made = Calls(*(np.concatenate([getattr(one, field.name) for one in parts])
        for field in fields(Calls)))
    return made.where(np.argsort(made.start, kind="stable"))


def answered(steps: Collection[StepReport], numbers: Mapping[str, int], written: np.ndarray,
        holds: Mapping[str, bool]) -> dict[str, Answered]:
    """By path. numbers: of the names; written: of all files that are written; holds: by path
    whether the layer holds the file open after its close."""
    paths = list(numbers)
    found = {path: Answered() for path in paths}
    is_held = np.array([holds[path] for path in paths], bool)
    for step in steps:
        calls = calls_of(step.data, np.array([numbers[path] for path in paths]), written)
        _add_opens(found, paths, is_held, calls)
        _add_queries(found, paths, calls)
    return found


def _add_opens(found: dict[str, Answered], paths: list[str], is_held: np.ndarray,
        calls: Calls) -> None:
    """Of a process, all opens of a file but as many as it had open at once, and as often as the
    name was changed between; the same number of closes."""
    table = np.where(_mask(OPENS), 1, 0) - np.where(_mask(CLOSES), 1, 0)
    table = np.where(_mask(CHANGES), 2, table)
    own = calls.where((calls.file >= 0) & (table[calls.op] != 0))
    if not len(own):
        return
    own = own.where(np.lexsort((own.start, own.file, own.member)))
    kind, begins = table[own.op], starts(own.member, own.file)
    users = np.bincount(own.file[begins], minlength=len(paths))
    files_of = np.bincount(own.member[begins])
    changed = np.sort(calls.where(_mask(CHANGES)[calls.op]).start)
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(own)]):
        file, steps = int(own.file[begin]), kind[begin:end]
        opens, closes = (steps == 1), (steps == -1)
        one = found[paths[file]]
        one.whole_ns += int(own.ns[begin:end][opens | closes].sum())
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
    moves = _mask((*OPENS, *CLOSES))[calls.op]
    changed = calls.where(_mask(CHANGES)[calls.op] | (moves & calls.is_written))
    mask = (calls.file >= 0) & _mask(QUERIES)[calls.op]
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
    tells[_mask(("lstat",))], tells[_mask(("access",))] = _OF_LSTAT, _OF_ACCESS
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
    step = np.where(_mask(OPENS), 1, 0) - np.where(_mask(CLOSES), 1, 0)
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
