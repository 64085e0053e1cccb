# SPDX-License-Identifier: Apache-2.0
"""Finding late-definitions: variables are defined when the file has data already. Classic netCDF
then moves all data behind the header that has grown: it reads and writes the file again."""

from __future__ import annotations

import numpy as np

from weir.advise.frame.facts import Facts, File, Files
from weir.advise.frame.finding import Advice, Finding, Limit
from weir.advise.frame.grouping import Group, find_by_pattern
from weir.advise.frame.saving import Range
from weir.report.frame.amounts import amount, number, seconds

TIMES = Limit("times that definitions of a file are begun anew", 1, "times",
    "each may move all data that are there")
MOVED = Limit("bytes read back and written again over those of the file", 0.25, "share",
    "chosen: below a quarter the data were not moved, or hardly any were there")
_REDEF = ("nc_redef", "ncmpi_redef")


def _moved(file: File) -> int:
    """Bytes beyond those that the file has."""
    write = file.write
    return file.read.bytes + max(0, write.bytes - write.span * max(1, write.steps))


def _candidates(facts: Facts, files: Files) -> np.ndarray:
    return files.mask(facts.functions)


def _is_one(facts: Facts, file: File) -> bool:
    return (facts.called(file, _REDEF) >= TIMES.value and file.write.again > 0
        and _moved(file) >= MOVED.value * file.write.span > 0)


def _part(file: File) -> tuple[File, Range]:
    moved, whole = _moved(file), file.read.bytes + file.write.bytes
    cost_s = (file.read.seconds + file.write.seconds) * moved / whole
    return file, Range(0.5 * cost_s, cost_s)


def _advice(facts: Facts, group: Group) -> Advice:
    calls = sum(facts.called(one, _REDEF) for one in group.files)
    moved, span = sum(map(_moved, group.files)), sum(one.write.span for one in group.files)
    requests = sum(int((one.write.calls + one.read.calls) * _moved(one)
        / (one.write.bytes + one.read.bytes)) for one in group.files)
    return Advice(
        "late-definitions", group.what, group.paths,
        f"{number(calls)} calls of nc_redef move {amount(moved)} for {amount(span)} of "
        f"file: "
        f"{seconds(sum(_part(one)[1].high for one in group.files))}.",
        facts.saving([_part(one) for one in group.files], requests),
        "Define all dimensions, variables and attributes before the first write (one nc_enddef), or "
        "leave room for them in the header (h_minfree of nc__enddef).",
    )  # fmt: skip


LATE_DEFINITIONS = Finding(
    name="late-definitions",
    asks="Are variables of classic netCDF defined when data were written already?",
    shrinks="I/O",
    limits=(TIMES, MOVED),
    page="guide/patterns.md",
    table="patterns",
    cure="",
    find=find_by_pattern(_candidates, _advice, is_one=_is_one),
)
