# SPDX-License-Identifier: Apache-2.0
"""Finding written-again: a rank writes the same bytes of a file more than once, or reads them back
to change them; classic netCDF does both with headers and blocks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weir.advise.frame.bypass import is_left_alone
from weir.advise.frame.facts import Facts, File, Files
from weir.advise.frame.finding import Advice, Finding
from weir.advise.findings.small_requests.finding import (
    AT_ONCE,
    BLOCK,
    SLOW,
    begun,
    buffer_rule,
    merged,
    way_after,
)
from weir.advise.frame.grouping import Group, groups
from weir.advise.frame.libraries import libraries
from weir.advise.frame.openings import open_at_once
from weir.advise.frame.saving import Range, saved
from weir.advise.frame.finding import Limit
from weir.report.frame.amounts import amount, counted, seconds

TIMES = Limit("bytes that are written over the range that they lie in", 1.25, "times",
    "a quarter more than the file has begins to show in the time of its output")
SWITCHES = Limit("changes between reading and writing of the file", 32, "changes",
    "chosen: a program that reads a file back once or twice has few")
MANY = Limit("writes of the file", 100, "writes",
    "chosen: fewer writes of 200 us, as of a shared file system, take less than the 20 ms that a "
    "finding must be worth")


_NETCDF = ("Define all variables before the first write (nc_enddef once, nc__enddef with room for "
    "the header); NC_NOFILL; a larger buffer (nc__create).")
_OTHER = ("Keep what changes in memory, and write it once, when it is complete; write in the order "
    "of the file.")


def _candidates(files: Files) -> np.ndarray:
    write, read = files.write, files.read
    is_again = (write.again > 0) & (write.bytes >= TIMES.value * write.span * write.steps)
    is_read_back = ((write.switches >= SWITCHES.value) & (read.bytes > 0)
        & (read.bytes <= write.bytes))
    return ((write.calls >= MANY.value) & write.is_slow(SLOW.value) & (write.ranks == 1)
        & (is_again | is_read_back))


def _part(facts: Facts, file: File, is_shared: bool) -> tuple[File, Range]:
    total = Range(0.0, 0.0)
    for name, way in (("read", file.read), ("write", file.write)):
        if is_shared:
            total += merged(facts, file, name, BLOCK, 1)
        elif way.calls:
            total += saved(way.seconds, way_after(facts, file, name), way.outlier_s)
    return file, total


def _advice(facts: Facts, group: Group, shared: bool) -> Advice:
    """shared: files are open more than once at a time (frame/openings.py)."""
    writes, reads = ([getattr(one, way) for one in group.files] for way in ("write", "read"))
    span = sum(w.span for w in writes)
    size, back = sum(w.bytes for w in writes), sum(r.bytes for r in reads)
    ns = sum(w.ns for w in (*writes, *reads))
    return Advice(
        "written-again", group.what, group.paths,
        f"{amount(size)} are written and {amount(back)} read back for {amount(span)} of file, "
        f"with {counted(sum(w.switches for w in writes), 'change')} between reading and writing: "
        f"{seconds(ns / 1e9)}{AT_ONCE if shared else ''}.",
        facts.saving(begun([_part(facts, one, shared) for one in group.files]),
            sum(w.calls for w in (*writes, *reads)) - 2 * (span // BLOCK + 1)),
        _NETCDF if "netcdf" in libraries(group.files) else _OTHER,
        buffer_rule(group, shared),
    )  # fmt: skip


def _find(facts: Facts) -> Iterator[Advice]:
    files = [one for one in facts.among(_candidates(facts.files)) if not is_left_alone(one)]
    at_once = open_at_once(facts, files)
    for group in groups(facts, files):
        yield _advice(facts, group, not at_once.isdisjoint(group.paths))


WRITTEN_AGAIN = Finding(
    name="written-again",
    asks="Are the same bytes written more than once, or read back to be changed?",
    shrinks="I/O",
    limits=(TIMES, MANY, SWITCHES, SLOW),
    page="guide/patterns.md",
    table="patterns",
    cure="bufa",
    find=_find,
)
