# SPDX-License-Identifier: Apache-2.0
"""Finding same-bytes: the ranks of a node read the same bytes of a file, each for itself."""

from __future__ import annotations

import numpy as np

from weir.advise.frame.bypass import is_served_by_kernel
from weir.advise.frame.facts import Facts, File, Files, Way
from weir.advise.frame.finding import Advice, Finding, Rule
from weir.advise.findings.small_requests.finding import (
    OF_AN_OPEN,
    SLOW,
    effective_calls,
    merged,
)
from weir.advise.frame.grouping import Group, find_by_pattern
from weir.advise.frame.saving import Range, request_count, saved
from weir.advise.frame.speeds import in_blocks
from weir.advise.frame.finding import Limit
from weir.report.frame.amounts import amount, number, seconds

BLOCK = 2 << 20
BUFFERS = 2
TIMES = Limit("bytes read by all ranks over the range that they lie in", 1.25, "times",
    "a quarter of the reads, at most a quarter of their time: less does not pay for the cache")
LARGE = Limit("size of what is read of files of one pattern", 4 << 20, "B",
    "two blocks of the cache: less is read by one request of each rank anyway")


def _candidates(facts: Facts, files: Files) -> np.ndarray:
    way = files.read
    return (way.ranks > 1) & way.is_slow(SLOW.value) & (way.bytes >= TIMES.value * way.span)


def _is_one(facts: Facts, file: File) -> bool:
    return not (facts.is_local(file.path) or is_served_by_kernel(file))


def part(facts: Facts, file: File, way: Way) -> tuple[File, Range]:
    """Each block is read once, by one rank. The least of what remains: ranks take turns to wait for
    blocks; the most: all of them wait for each block, and for its way to their node. Small writes
    of the file are merged as well."""
    requests = effective_calls(file, "read")
    calls = max(1, requests * way.span // max(way.bytes, 1))
    call_s = way.seconds / max(requests, 1)
    speeds = facts.speeds(file.path, "read")
    copies, times = speeds.copies(way.bytes), way.ranks * way.steps
    once = in_blocks(calls, way.span, call_s, BLOCK, facts.speeds(file.path, "read", 1))
    between_s = times * way.span / speeds.network if facts.nodes > 1 else 0.0
    reads = saved(way.seconds, Range(once.low + copies.low,
        once.high * times + copies.high + between_s))
    opens = min(OF_AN_OPEN * file.of_class("O")[0] * call_s, reads.low)
    return file, Range(reads.low - opens, reads.high) + merged(facts, file, "write", BLOCK)


def _advice(facts: Facts, group: Group) -> Advice:
    ways = [one.read for one in group.files]
    size, span = sum(w.bytes for w in ways), sum(w.span * w.steps for w in ways)
    calls = sum(w.calls for w in ways)
    return Advice(
        "same-bytes", group.what, group.paths,
        f"{max(w.ranks for w in ways)} ranks read {amount(size)} of {amount(span)}, "
        f"{size / max(span, 1):.1f} times each byte, with {number(calls)} calls: "
        f"{seconds(sum(w.seconds for w in ways))} of all ranks.",
        facts.saving([part(facts, one, one.read) for one in group.files],
            sum(effective_calls(one, "read") for one in group.files)
            - sum(request_count(w.span * w.steps, BLOCK) for w in ways)),
        "Read on one rank and broadcast (MPI_Bcast), or read collectively.",
        Rule(group.pattern, f"global:{BLOCK >> 20}MiB:{BUFFERS}"),
    )  # fmt: skip


def _are_enough(facts: Facts, group: Group) -> bool:
    return sum(one.read.bytes for one in group.files) >= LARGE.value


SAME_BYTES = Finding(
    name="same-bytes",
    asks="Do the ranks read the same bytes of a file, each for itself?",
    shrinks="I/O",
    limits=(TIMES, LARGE, SLOW),
    page="guide/advise.md",
    table="patterns",
    cure="global",
    find=find_by_pattern(_candidates, _advice, _are_enough, _is_one),
)
