# SPDX-License-Identifier: Apache-2.0
"""Finding read-again: one rank reads the same bytes of its file more than once."""

from __future__ import annotations

import numpy as np

from weir.advise.frame.bypass import is_served_by_kernel
from weir.advise.frame.facts import Facts, File, Files, Way
from weir.advise.frame.finding import Advice, Finding, Rule
from weir.advise.findings.same_bytes.finding import LARGE
from weir.advise.findings.small_requests.finding import BLOCK, SLOW, effective_calls
from weir.advise.frame.grouping import Group, find_by_pattern
from weir.advise.frame.saving import Range, request_count, saved
from weir.advise.frame.speeds import in_blocks
from weir.advise.frame.finding import Limit
from weir.report.frame.amounts import amount, number, seconds

TIMES = Limit("bytes that a rank reads over the range that they lie in", 1.5, "times",
    "half of a second time: from there on a cache saves a third of the bytes")
FITS = Limit("size of the part of the file that is kept, at most", 256 << 20, "B",
    "chosen: a quarter of a GiB for each rank is what most jobs have to spare")


def _candidates(facts: Facts, files: Files) -> np.ndarray:
    way = files.read
    return ((way.ranks == 1) & (way.unknown == 0) & way.is_slow(SLOW.value)
        & (way.bytes >= LARGE.value) & (way.bytes >= TIMES.value * way.steps * way.span)
        & (way.span <= FITS.value))


def _is_one(facts: Facts, file: File) -> bool:
    return not (facts.is_local(file.path) or is_served_by_kernel(file))


def _part(facts: Facts, file: File, way: Way) -> tuple[File, Range]:
    calls = max(1, effective_calls(file, "read") * way.span * way.steps // max(way.bytes, 1))
    speeds = facts.speeds(file.path, "read")
    once = in_blocks(calls, way.span * way.steps, way.call_s, BLOCK, speeds)
    return file, saved(way.seconds, once + speeds.copies(way.bytes), way.outlier_s)


def _advice(facts: Facts, group: Group) -> Advice:
    ways = [one.read for one in group.files]
    size, span = sum(w.bytes for w in ways), sum(w.span * w.steps for w in ways)
    blocks = request_count(max(w.span for w in ways), BLOCK) + 1
    return Advice(
        "read-again", group.what, group.paths,
        f"a rank reads {amount(size)} of {amount(span)} with "
        f"{number(sum(w.calls for w in ways))} calls, {size / max(span, 1):.1f} times each byte: "
        f"{seconds(sum(w.seconds for w in ways))}.",
        facts.saving([_part(facts, one, one.read) for one in group.files],
            sum(effective_calls(one, "read") for one in group.files) - request_count(span, BLOCK)),
        "Keep what was read in memory, or compute with all of it before reading on.",
        Rule(group.pattern, f"global:{BLOCK >> 20}MiB:{blocks}"),
    )  # fmt: skip


READ_AGAIN = Finding(
    name="read-again",
    asks="Does a rank read the same bytes more than once?",
    shrinks="I/O",
    limits=(TIMES, FITS, LARGE, SLOW),
    page="guide/advise.md",
    table="patterns",
    cure="global",
    find=find_by_pattern(_candidates, _advice, is_one=_is_one),
)
