# SPDX-License-Identifier: Apache-2.0
"""Finding reopened: a program opens, closes or asks for the same file over and over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from weir.advise.frame.facts import Facts, File, Files
from weir.advise.frame.finding import Advice, Finding, Rule
from weir.advise.findings.reopened.served import QUERIES, Answered, answered
from weir.advise.frame.grouping import Group, groups
from weir.advise.frame.saving import Range, saved
from weir.advise.frame.finding import Limit
from weir.report.frame.amounts import counted, seconds

TIMES = Limit("opens and queries by name of a file by a rank, on average", 2, "calls",
    "the layer saves those after the first, and one query a second")
UNKNOWN_TIMES = Limit("the same at level detail, which has no order of calls", 8, "calls",
    "chosen: most of the calls are those that the layer saves, in whichever order they come")
MANY = Limit("of these what the layer answers, of all files together", 100, "calls",
    "chosen: fewer cost milliseconds")
SLOW = Limit("mean time of an open or query", 50e-6, "s",
    "layer keep leaves opens of at most 30 us, and most of 200 us, to the system")
_OPENS = ("open", "openat", "creat", "fopen", "freopen", "fortran_open")
_CLOSES = ("close", "fclose", "fortran_close")
# statx, which coreutils, Java and Rust call, and faccessat the layer passes on.
_QUERIES = (*QUERIES, "fortran_inquire")
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


def _has_records(facts: Facts) -> bool:
    return all(step.level == "trace" for step in facts.report.steps)


def _least_times(facts: Facts) -> float:
    return (TIMES if _has_records(facts) else UNKNOWN_TIMES).value


def _candidates(facts: Facts, files: Files) -> np.ndarray:
    """Layer keep does not answer for names that do not exist."""
    opens, open_ns = files.of((*_OPENS, *_QUERIES))
    times = _least_times(facts)
    users = np.maximum(1, np.maximum(files.read.users, files.write.users))
    return ((opens >= times * users) & (open_ns / 1e9 >= SLOW.value * opens)
        & (2 * files.failed <= opens))


def _is_one(facts: Facts, file: File) -> bool:
    """Layer keep answers for regular files alone."""
    return (file.path not in facts.directories
        and file.own((*_OPENS, *_QUERIES))[0] >= _least_times(facts) * _users(file))


def _is_held(file: File) -> bool:
    """Whether the layer holds it open after its close: it is read, or appended to by O_APPEND,
    which units of Fortran have not."""
    if not file.write.calls:
        return True
    is_small = file.write.mean_bytes <= _APPENDED and not file.read.calls
    return is_small and not file.of(("fortran_open",))[0]


def _answers(facts: Facts, files: Sequence[File]) -> dict[str, Answered]:
    """By path, from the records of the run."""
    report, number = facts.report, facts.report.names.number
    written = facts.files.paths_of(facts.files.written > 0)
    return answered(report.steps, {one.path: number(one.path) for one in files},
        np.array([number(path) for path in written], np.int64),
        {one.path: _is_held(one) for one in files})


def _part(file: File, one: Answered) -> tuple[File, Range]:
    """What is not answered remains; of appended lines most are held as well. The layer adds an
    fstat to each opening that it does not serve: a request, as a close is."""
    least, most = (ns / 1e9 for ns in one.ns)
    held_s = file.write.seconds if one.opens and file.write.calls else 0.0
    before_s = one.whole_ns / 1e9 + held_s
    closes, close_ns = file.own(_CLOSES)
    asked_s = max(0, closes - one.opens) * close_ns / 1e9 / max(1, closes)
    return file, saved(before_s, Range(before_s - most - held_s,
        before_s - least - 0.9 * held_s + asked_s))


def _estimated(facts: Facts, file: File) -> tuple[File, Range]:
    """The same without records: what remains are the first of each rank, and one query each second;
    up to all queries where the run writes, as the layer forgets its answers when any file is opened
    or closed for that."""
    calls, ns = _ops(file)
    if not _is_held(file):
        return file, saved(ns / 1e9, Range(ns / 2e9, ns / 1e9))
    first = min(calls, OF_A_USER * _users(file) + int(facts.wall_s))
    each = ns / 1e9 / max(calls, 1)
    queries_s = file.own(_QUERIES)[1] / 1e9 if facts.is_writing else 0.0
    most = min(ns / 1e9, first * each + max(queries_s, 0.1 * ns / 1e9))
    return file, saved(ns / 1e9, Range(_users(file) * each, most))


def _advice(facts: Facts, group: Group, answers: dict[str, Answered]) -> Advice:
    calls, ns = map(sum, zip(*(_ops(one) for one in group.files)))
    opens, queries = (sum(one.own(ops)[0] for one in group.files) for ops in (_OPENS, _QUERIES))
    parts = [_part(one, answers[one.path]) if answers else _estimated(facts, one)
        for one in group.files]
    fewer = sum(2 * one.opens + sum(one.queries) // 2 for one in
        (answers[file.path] for file in group.files)) if answers else int(0.9 * calls)
    return Advice(
        "reopened", group.what, group.paths,
        f"{counted(opens, 'open')} and {counted(queries, 'stat or access call')} of "
        f"{counted(len(group.files), 'file')} take, with their closes and small writes, "
        f"{seconds(ns / 1e9)}.",
        facts.saving(parts, fewer),
        "Open the file once and leave it open; flush it instead of closing it.",
        Rule(group.pattern, "keep"),
    )  # fmt: skip


def _are_many(group: Group) -> bool:
    return sum(one.own((*_OPENS, *_QUERIES))[0] for one in group.files) >= MANY.value


def find(facts: Facts) -> Iterator[Advice]:
    files = [one for one in facts.among(_candidates(facts, facts.files)) if _is_one(facts, one)]
    if not files:
        return
    answers = _answers(facts, files) if _has_records(facts) else {}
    found = list(groups(facts, files))
    if not answers:
        found = [group for group in found if _are_many(group)]
    elif sum(one.opens + one.queries[1] for one in answers.values()) < MANY.value:
        return
    else:  # an access that asks for more than whether the name is there may be answered, or none is
        found = [group for group in found if any(answers[one.path].opens
            or answers[one.path].queries[0] for one in group.files)]
    for group in found:
        yield _advice(facts, group, answers)


REOPENED = Finding(
    name="reopened",
    asks="Is the same file opened, closed or asked for over and over?",
    shrinks="I/O",
    limits=(TIMES, UNKNOWN_TIMES, MANY, SLOW),
    page="guide/advise.md",
    table="files",
    cure="keep",
    find=find,
)
