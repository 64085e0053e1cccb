# SPDX-License-Identifier: Apache-2.0
"""Finding lock-step-creates: all ranks create their files in one directory at the same moment, and
stand in a queue at its metadata server, which creates one after the other."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from weir.advise.frame.facts import Facts, File
from weir.advise.frame.finding import Advice, Finding, Limit
from weir.advise.frame.saving import Range
from weir.analysis.columns import Columns
from weir.report.frame.amounts import counted, number, seconds
from weir.report.frame.build import StepReport
from weir.trace.ops import op_named

RANKS = Limit("ranks that create files in a directory", 4, "ranks",
    "chosen: fewer hardly wait for another")
AT_ONCE = Limit("creates under way at the same time, on average", 2, "creates",
    "of two at a time each waits for the other")
SLOWER = Limit("mean time of a create over that of the fastest tenth", 2, "times",
    "in a queue of four ranks the mean is 2.5 times the first one's")
_OPENS = ("open", "openat", "creat")


@dataclass
class Creates:
    """Those of one directory and step, one row each."""

    ranks: list[int] = field(default_factory=list)
    begins: list[int] = field(default_factory=list)
    ns: list[int] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    @property
    def busy_ns(self) -> int:
        """In which at least one of them is under way."""
        busy = last = 0
        for begin, ns in sorted(zip(self.begins, self.ns)):
            end = begin + ns
            busy += max(0, end - max(begin, last))
            last = max(last, end)
        return busy

    @property
    def alone_ns(self) -> float:
        """What one takes that nobody stands in front of."""
        return float(np.quantile(self.ns, 0.1)) if self.ns else 0.0

    def are_in_lock_step(self) -> bool:
        whole = sum(self.ns)
        return (len(set(self.ranks)) >= RANKS.value and whole >= AT_ONCE.value * self.busy_ns > 0
            and whole >= SLOWER.value * self.alone_ns * len(self.ns))


def _created(facts: Facts) -> dict[str, File]:
    files = facts.files
    mask = ((files.write.bytes > 0) & (files.write.ranks == 1) & (files.read.bytes == 0)
        & (files.of(_OPENS)[0] > 0))
    return {one.path: one for one in facts.among(mask) if not facts.is_local(one.path)}


def _by_directory(facts: Facts, step: StepReport, files: dict[str, File]) -> dict[str, Creates]:
    opens = [op_named(name).value for name in _OPENS]
    path_of = {facts.report.names.number(name): path for path, one in files.items()
        for name in (path, *(one.totals.also if one.totals is not None else ()))}
    names = np.fromiter(path_of, np.int64, len(path_of))

    def is_create(some: Columns) -> np.ndarray:
        return np.isin(some.op, opens) & np.isin(some.name, names) & ~some.is_nested

    rows = step.seen_where(is_create)
    found: dict[str, Creates] = defaultdict(Creates)
    for name, rank, begin, ns, calls in zip(*(getattr(rows, key).tolist()
            for key in ("name", "rank", "first_ns", "ns", "calls"))):
        if rank >= 0 and calls:
            one = found[posixpath.dirname(path_of[name])]
            one.ranks.append(rank)
            one.begins.append(begin)
            one.ns.append(ns // calls)
            one.paths.append(path_of[name])
    return found


def _advice(facts: Facts, directory: str, one: Creates, files: dict[str, File]) -> Advice:
    paths = tuple(dict.fromkeys(one.paths))
    parts = [(files[path], Range(0.0, max(0.0, ns - one.alone_ns) / 1e9))
        for path, ns in zip(one.paths, one.ns)]
    return Advice(
        "lock-step-creates", facts.shown(directory), paths,
        f"{number(len(set(one.ranks)))} ranks create {counted(len(one.ns), 'file')} at the same "
        f"time: {seconds(sum(one.ns) / 1e9)}, {sum(one.ns) / len(one.ns) / one.alone_ns:.1f} times "
        "as long as the fastest of them take.",
        facts.saving(parts, 0),
        "Write one common file, or files of a directory for each rank or node; create them before "
        "they are needed, beside computing.",
    )  # fmt: skip


def find(facts: Facts) -> Iterator[Advice]:
    files = _created(facts)
    if facts.ranks < RANKS.value or len(files) < RANKS.value:
        return
    for step in facts.report.steps:
        for directory, one in _by_directory(facts, step, files).items():
            if one.are_in_lock_step():
                yield _advice(facts, directory, one, files)


LOCK_STEP_CREATES = Finding(
    name="lock-step-creates",
    asks="Do all ranks create files in one directory at the same moment?",
    shrinks="I/O",
    limits=(RANKS, AT_ONCE, SLOWER),
    page="guide/pack.md",
    table="files",
    cure="",
    decides="whether the server makes the files of a directory one after the other",
    find=find,
)
