# SPDX-License-Identifier: Apache-2.0
"""Finding reopened: a program opens, closes or asks for the same file over and over."""

from __future__ import annotations

import numpy as np

from weir.advise.frame.facts import Facts, File, Files
from weir.advise.frame.finding import Advice, Finding, Rule
from weir.advise.frame.grouping import Group, find_by_pattern
from weir.advise.frame.saving import Range, saved
from weir.advise.frame.finding import Limit
from weir.report.frame.amounts import counted, seconds

TIMES = Limit("opens and queries by name of a file by a rank, on average", 8, "calls",
    "chosen: the layer saves those after the first, and one query a second")
MANY = Limit("the same of all files of a pattern", 100, "calls",
    "chosen: fewer cost milliseconds")
SLOW = Limit("mean time of an open or query", 50e-6, "s",
    "layer keep leaves opens of at most 30 us, and most of 200 us, to the system")
_OPENS = ("open", "openat", "creat", "fopen", "freopen", "fortran_open")
_CLOSES = ("close", "fclose", "fortran_close")
# statx, which coreutils, Java and Rust call, the layer passes on.
_QUERIES = ("stat", "lstat", "fstatat", "access", "faccessat", "fortran_inquire")
OF_A_USER = 3  # open, close and a query, of each rank in each step
_APPENDED = 16 << 10  # larger writes go through the layer


def _ops(file: File) -> tuple[int, int]:
    """Calls and ns of what layer keep answers itself."""
    opens, open_ns = file.own(_OPENS)
    closes, close_ns = file.own(_CLOSES)
    queries, query_ns = file.own(_QUERIES)
    calls, ns = opens + closes + queries, open_ns + close_ns + query_ns
    if file.write.calls and file.write.mean_bytes <= _APPENDED and not file.read.calls:
        calls, ns = calls + file.write.calls, ns + file.write.ns
    return calls, ns


def _users(file: File) -> int:
    return max(1, file.read.users, file.write.users)


def _candidates(facts: Facts, files: Files) -> np.ndarray:
    """Layer keep does not answer for names that do not exist."""
    opens, open_ns = files.of((*_OPENS, *_QUERIES))
    users = np.maximum(1, np.maximum(files.read.users, files.write.users))
    return ((opens >= TIMES.value * users) & (open_ns / 1e9 >= SLOW.value * opens)
        & (2 * files.failed <= opens))


def _is_one(facts: Facts, file: File) -> bool:
    """Layer keep answers for regular files alone."""
    return (file.path not in facts.directories
        and file.own((*_OPENS, *_QUERIES))[0] >= TIMES.value * _users(file))


def _part(facts: Facts, file: File) -> tuple[File, Range]:
    """What remains: the first of each rank, and one query each second; up to all queries where the
    run writes, as the layer forgets its answers when any file is opened or closed for that."""
    calls, ns = _ops(file)
    first = min(calls, OF_A_USER * _users(file) + int(facts.wall_s))
    each = ns / 1e9 / max(calls, 1)
    queries_s = file.own(_QUERIES)[1] / 1e9 if facts.is_writing else 0.0
    most = min(ns / 1e9, first * each + max(queries_s, 0.1 * ns / 1e9))
    return file, saved(ns / 1e9, Range(_users(file) * each, most))


def _advice(facts: Facts, group: Group) -> Advice:
    calls, ns = map(sum, zip(*(_ops(one) for one in group.files)))
    opens, queries = (sum(one.own(ops)[0] for one in group.files) for ops in (_OPENS, _QUERIES))
    parts = [_part(facts, one) for one in group.files]
    return Advice(
        "reopened", group.what, group.paths,
        f"{counted(opens, 'open')} and {counted(queries, 'stat or access call')} of "
        f"{counted(len(group.files), 'file')} take, with their closes and small writes, "
        f"{seconds(ns / 1e9)}.",
        facts.saving(parts, int(0.9 * calls)),
        "Open the file once and leave it open; flush it instead of closing it.",
        Rule(group.pattern, "keep"),
    )  # fmt: skip


def _are_enough(facts: Facts, group: Group) -> bool:
    return sum(one.own((*_OPENS, *_QUERIES))[0] for one in group.files) >= MANY.value


REOPENED = Finding(
    name="reopened",
    asks="Is the same file opened, closed or asked for over and over?",
    shrinks="I/O",
    limits=(TIMES, MANY, SLOW),
    page="guide/advise.md",
    table="files",
    cure="keep",
    find=find_by_pattern(_candidates, _advice, _are_enough, _is_one),
)
