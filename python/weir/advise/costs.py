# SPDX-License-Identifier: Apache-2.0
"""Files with much I/O time that no finding is about: which calls take it, and what in the program
or of the file system would shorten it. Decides nothing about which files these are (advise.py)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from weir.advise.advise import Report, Rest
from weir.advise.findings.small_requests.finding import SMALL
from weir.advise.frame.files import class_of
from weir.advise.frame.finding import Limit
from weir.report.frame.amounts import number, seconds, share

WAITS = Limit("time by which I/O delays the run over its wall time", 0.5, "share",
    "chosen: below a half the run does something else most of its time")
_NAMED = 3  # operations
_SYNCS = ("fsync", "fdatasync", "sync_file_range", "msync", "syncfs", "sync")
# Neither ask for names nor change them: a part of reading and writing.
_OF_DATA = ("lseek", "fseek", "ftell", "rewind", "fflush", "fstat", "ftruncate", "fallocate",
    "posix_fallocate", "posix_fadvise", "mmap", "munmap", "dup", "dup2", "dup3", "fcntl", "flock")


def delay_s(report: Report) -> float | None:
    """By which I/O delays the run; None where that is not known."""
    critical_ns = report.facts.files.critical_of(report.facts.files)
    return None if critical_ns is None else critical_ns / 1e9


def waits_for_io(report: Report) -> bool:
    """Whether the run would be much shorter if its I/O took no time."""
    delay = delay_s(report)
    return delay is not None and delay >= WAITS.value * report.facts.wall_s


def delay_text(report: Report) -> str:
    """`which waits 24.3 s of 28.5 s (85 %) for I/O`"""
    delay, wall_s = delay_s(report), report.facts.wall_s
    if delay is None:
        return f"whose I/O takes {seconds(report.facts.report.all.seconds)} of all ranks"
    return f"which waits {seconds(delay)} of {seconds(wall_s)} ({share(delay, wall_s)}) for I/O"


def _by_operation(report: Report, one: Rest) -> tuple[Counter[str], Counter[str]]:
    """Calls and ns."""
    calls: Counter[str] = Counter()
    ns: Counter[str] = Counter()
    for path in one.group.members:
        for op in report.facts.files[path].ops:
            calls[op.op] += op.calls
            ns[op.op] += op.ns
    return calls, ns


def operations_text(report: Report, one: Rest) -> str:
    """The operations that take longest: `2,580 open 14.2 s, 1,160 stat 5.1 s`"""
    calls, ns = _by_operation(report, one)
    return ", ".join(f"{number(calls[op])} {op} {seconds(value / 1e9)}"
        for op, value in ns.most_common(_NAMED) if value)


def change_of(report: Report, one: Rest) -> str:
    """What would shorten it, by the kind of calls that takes longest."""
    calls, ns = _by_operation(report, one)
    data = [op for op in ns if class_of(op) in "RW" or op in _OF_DATA]
    names = [op for op in ns if op not in data and op not in _SYNCS]
    kinds = {_of_names: names, _of_data: data, _of_syncs: [op for op in ns if op in _SYNCS]}
    longest = max(kinds, key=lambda kind: sum(ns[op] for op in kinds[kind]))
    return longest(one, calls, kinds[longest])


def _of_names(one: Rest, calls: Counter[str], operations: Collection[str]) -> str:
    count, files = sum(calls[op] for op in operations), one.group.files
    each = count / files
    often = (f"each file is opened, closed or queried {each:.0f} times; once would do"
        if each >= 4 else "the program needs fewer, larger files")
    return (f"{often}, or files in memory or on a disk of the node ($TMPDIR), where such a call "
        f"takes microseconds")


def _of_data(one: Rest, calls: Counter[str], operations: Collection[str]) -> str:
    count = sum(calls[op] for op in operations if class_of(op) in "RW")
    if one.group.bytes <= SMALL.value * count:
        return "larger calls, in the order of the file; or a buffer in the program"
    return "fewer bytes (compression, precision), or more stripes and ranks that move them"


def _of_syncs(one: Rest, calls: Counter[str], operations: Collection[str]) -> str:
    return "one fsync after the last write"
