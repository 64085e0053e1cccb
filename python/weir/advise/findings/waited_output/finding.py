# SPDX-License-Identifier: Apache-2.0
"""Finding waited-output: the run waits for output that could be written beside computing."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from weir.advise.frame.bypass import UNNAMED
from weir.advise.frame.facts import Facts, File, Files
from weir.advise.frame.finding import Advice, Finding, Rule
from weir.advise.frame.grouping import Group, groups, unusable
from weir.advise.frame.openings import CHANGES, QUERIES
from weir.advise.frame.saving import Range
from weir.advise.frame.finding import Limit
from weir.report.frame.amounts import amount, number, seconds

LARGE = Limit("mean size of a write", 64 << 10, "B",
    "smaller ones are a matter of their number (small-requests, interleaved-writes)")
SLOW = Limit("rate of the writes, at most", 400e6, "B/s",
    "measured: a copy into memory on a node whose cores are busy; output that is as fast is hidden "
    "by the page cache already")
SHARE = Limit("share of the files' I/O time in their writes and closes", 0.5, "share",
    "layer stage leaves opens, queries, renames and changes of permissions to the file system, "
    "where its daemon's requests for each file come in front of them; measured with vips, 27 ms of "
    "32 ms a file in such calls: they took 2.4 times as long")
COMPUTING = Limit("time of the run that is no I/O, over that of these writes", 1.0, "times",
    "what is written beside the program needs as much computing to hide behind")
_AT_PLACE = (*QUERIES, "statx", "faccessat", "readlink", *CHANGES)
# Layer stage, a tier in memory, two busy cores (its page: 64 MiB in 0.8 s).
SLOW_TIER_BYTES_PER_S = 0.1e9


def _candidates(files: Files) -> np.ndarray:
    way = files.write
    return ((way.calls > 0) & way.is_slow(SLOW.value) & (way.mean_bytes >= LARGE.value)
        & (files.read.bytes == 0) & (way.ranks == 1) & (files.of(UNNAMED)[0] == 0))


def _waits_s(facts: Facts, mask: np.ndarray) -> float:
    """By which I/O delays the run, of files that no layer has; all of it where that is not known.
    """
    files = facts.files
    costs = files.ns if files.critical_ns is None else np.where(files.critical_ns != 0,
        files.critical_ns, files.ns)
    return sum(costs[facts.are_bare & mask].tolist()) / 1e9


def _part(facts: Facts, file: File) -> tuple[File, Range]:
    """Calls that ask for names or change what is known of a file stay at the file system, and may
    take twice as long beside the daemon's requests."""
    size, metadata_s = file.write.bytes, file.of(_AT_PLACE)[1] / 1e9
    return file, facts.on_tier(file, Range(
        size / facts.speeds(file.path, "write").copy + metadata_s,
        size / SLOW_TIER_BYTES_PER_S + 2 * metadata_s))


def _is_of_bytes(group: Group) -> bool:
    """Whether the bytes of the files take the time, and not their number."""
    moved = sum(one.write.ns + one.of_class("C")[1] for one in group.files)
    return moved >= SHARE.value * sum(one.ns for one in group.files)


def _advice(facts: Facts, group: Group, hidden: float) -> Advice:
    ns, size = sum(one.ns for one in group.files), sum(one.write.bytes for one in group.files)
    computing_s = max(facts.wall_s - hidden, 1e-9)
    servers = max(1, math.ceil(ns / 1e9 / computing_s))
    return Advice(
        "waited-output", group.what, group.paths,
        f"ranks wait {seconds(ns / 1e9)} while {amount(size)} are written, at "
        f"{amount(size / max(ns / 1e9, 1e-9))} a second, beside {seconds(computing_s)} without "
        f"I/O in which it could be done.",
        facts.saving([_part(facts, one) for one in group.files], 0),
        f"Write by I/O servers (libweir, mode servers): {number(servers)} "
        f"server{'s' * (servers != 1)} would do.",
        Rule(group.pattern, f"stage:tier={facts.tier}",
            caution="a file is at its place some seconds after it was closed; the tier needs room "
                    f"for {amount(size)}",
            unusable=unusable(group)),
    )  # fmt: skip


def find(facts: Facts) -> Iterator[Advice]:
    mask = _candidates(facts.files)
    hidden = _waits_s(facts, np.ones(len(mask), bool))
    if facts.wall_s - hidden < COMPUTING.value * _waits_s(facts, mask):
        return
    for group in groups(facts, facts.among(mask)):
        if _is_of_bytes(group):
            yield _advice(facts, group, hidden)


WAITED_OUTPUT = Finding(
    name="waited-output",
    asks="Does the run wait for output that could be written beside its computing?",
    shrinks="I/O",
    limits=(LARGE, SLOW, SHARE, COMPUTING),
    page="guide/stage.md",
    table="waits",
    cure="stage",
    decides="how fast the tier takes the data, and how much computing the writing can hide behind",
    find=find,
)
