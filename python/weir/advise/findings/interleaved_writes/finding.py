# SPDX-License-Identifier: Apache-2.0
"""Finding interleaved-writes: several ranks write small pieces of one part of a file in turn."""

from __future__ import annotations

import numpy as np

from weir.advise.frame.bypass import is_served_by_kernel
from weir.advise.frame.facts import Facts, File, Files, Way
from weir.advise.frame.finding import Advice, Finding, Rule
from weir.advise.findings.small_requests.finding import (
    CALL,
    MANY,
    SLOW,
    SMALL,
    are_many,
    is_interleaved,
    is_small,
    merged,
)
from weir.advise.frame.grouping import Group, find_by_pattern
from weir.advise.frame.saving import Range, request_count
from weir.advise.frame.finding import Limit
from weir.report.frame.amounts import amount, number, seconds

BLOCK = 2 << 20
BUFFERS = 2
DENSE = Limit("bytes written over the range that they lie in", 0.5, "share",
    "the layer writes whole blocks only where ranks together fill them; with gaps it writes parts")


def _candidates(facts: Facts, files: Files) -> np.ndarray:
    way = files.write
    is_dense = way.bytes >= DENSE.value * way.span
    return is_small(way) & is_interleaved(way) & is_dense


def _is_one(facts: Facts, file: File) -> bool:
    return not (facts.is_local(file.path) or is_served_by_kernel(file))


def _part(facts: Facts, file: File) -> tuple[File, Range]:
    """Reads of the file pass the cache as well."""
    return file, merged(facts, file, "write", BLOCK) + merged(facts, file, "read", BLOCK)


def _fewer(way: Way) -> int:
    return way.calls - request_count(way.bytes, BLOCK) if way.calls and is_small(way) else 0


def _advice(facts: Facts, group: Group) -> Advice:
    ways = [one.write for one in group.files]
    calls, size = sum(w.calls for w in ways), sum(w.bytes for w in ways)
    return Advice(
        "interleaved-writes", group.what, group.paths,
        f"{max(w.ranks for w in ways)} ranks write {number(calls)} pieces of "
        f"{amount(size / max(calls, 1))} on average in turn: "
        f"{seconds(sum(w.seconds for w in ways))} of all ranks.",
        facts.saving([_part(facts, one) for one in group.files],
            sum(_fewer(way) for one in group.files for way in (one.write, one.read))),
        "Write with collective calls (MPI_File_write_all with a view), or collect the pieces of a "
        "node on one rank first.",
        Rule(group.pattern, f"global:{BLOCK >> 20}MiB:{BUFFERS}"),
    )  # fmt: skip


def _are_enough(facts: Facts, group: Group) -> bool:
    return are_many(one.write for one in group.files)


INTERLEAVED_WRITES = Finding(
    name="interleaved-writes",
    asks="Do several ranks write small pieces of one part of a file in turn?",
    shrinks="I/O",
    limits=(MANY, SMALL, SLOW, CALL, DENSE),
    page="guide/advise.md",
    table="interleaving",
    cure="global",
    find=find_by_pattern(_candidates, _advice, _are_enough, _is_one),
)
