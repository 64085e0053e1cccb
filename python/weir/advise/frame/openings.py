# SPDX-License-Identifier: Apache-2.0
"""Calls that open, close, ask for and change files, from the records of a run; and which files are
open more than once at a time on a node and written: layers for one process bypass these
(bypassed_conflict), those that ranks share do not (native/layers/machinery/node/registry.h)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields

import numpy as np

from weir.advise.frame.facts import Facts
from weir.advise.frame.files import File
from weir.analysis.columns import has_name, starts
from weir.analysis.remote import pass_over_records
from weir.analysis.step import StepData
from weir.trace.events import read_events
from weir.trace.file import LOST
from weir.trace.ops import ERROR, POSIX, STDIO

OPENS = ("open", "openat", "creat", "fopen", "freopen")
CLOSES = ("close", "fclose")
QUERIES = ("stat", "lstat", "fstatat", "access")  # statx and faccessat pass
CHANGES = ("rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat", "remove",
    "truncate", "chmod", "chown", "utime", "setxattr", "removexattr")  # fmt: skip


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


def mask_of(names: Collection[str]) -> np.ndarray:
    """By value of operation: whether it is one of these, of the system or of stdio."""
    return has_name(names, POSIX, STDIO)


@pass_over_records
def calls_of(data: StepData, files: np.ndarray, written: np.ndarray,
        names: Collection[str]) -> Calls:
    """Those of these operations in a step, in the order of their beginnings, that succeeded. files:
    numbers of names; written: likewise of all that are written. cost: a pass over the records."""
    wanted = mask_of(names)
    place = {number: at for at, number in enumerate(files.tolist())}
    changes, parts = mask_of(CHANGES), []
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


def open_at_once(facts: Facts, files: Sequence[File]) -> frozenset[str]:
    """The paths of these files that are. cost: a pass over the records where a file that is written
    is opened more than once."""
    asked = [one.path for one in files if one.write.calls and one.of(OPENS)[0] > 1]
    if not asked:
        return frozenset()
    numbers = np.array([facts.report.names.number(path) for path in asked], np.int64)
    found: set[int] = set()
    for step in facts.report.steps:
        calls = calls_of(step.data, numbers, np.zeros(0, np.int64), (*OPENS, *CLOSES))
        found |= _open_at_once(step.data, calls)
    return frozenset(asked[at] for at in found)


def _open_at_once(data: StepData, calls: Calls) -> set[int]:
    """An opening lasts from the end of its call to the beginning of the one that closes it."""
    calls = calls.where(calls.file >= 0)
    if not len(calls):
        return set()
    is_open = mask_of(OPENS)[calls.op]
    first = [data.first_member(index) for index in range(len(data.files))]
    node = np.searchsorted(first, calls.member, "right")
    change = np.where(is_open, 1, -1)
    order = np.lexsort((change, calls.start + calls.ns * is_open, node, calls.file))
    file, node, change = calls.file[order], node[order], change[order]
    begins = starts(file, node)
    depth = np.cumsum(change)
    before = np.repeat(depth[begins] - change[begins], np.diff([*begins, len(file)]))
    return set(file[depth - before > 1].tolist())
