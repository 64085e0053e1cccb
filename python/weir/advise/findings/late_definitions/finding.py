# SPDX-License-Identifier: Apache-2.0
"""Finding late-definitions: variables are defined when the file has data already. Classic netCDF
then moves all data behind the header that has grown: it reads and writes the file again."""

from __future__ import annotations

import numpy as np

from weir.advise.frame.facts import Facts, File, Files
from weir.advise.frame.finding import Advice, Finding, Limit
from weir.advise.frame.grouping import Group, find_by_pattern
from weir.advise.frame.saving import Range
from weir.report.frame.amounts import amount, counted, seconds
from weir.report.mpi_io.definitions import Within

TIMES = Limit("times that definitions of a file are begun anew", 1, "times",
    "each may move all data that are there")
MOVED = Limit("bytes read and written within these definitions over those of the file", 0.25,
    "share", "chosen: below a quarter the data were not moved, or hardly any were there")
_REDEF = ("nc_redef", "ncmpi_redef")
_NONE = Within()


def _moved(facts: Facts, file: File) -> Within:
    return facts.within_definitions.get(file.path, _NONE)


def _candidates(facts: Facts, files: Files) -> np.ndarray:
    return files.mask(facts.functions)


def _is_one(facts: Facts, file: File) -> bool:
    """Other bytes of the file may be written again as well, but by puts: of definitions are those
    alone that their calls move."""
    return (facts.called(file, _REDEF) >= TIMES.value and file.write.again > 0
        and _moved(facts, file).bytes >= MOVED.value * file.write.span > 0)


def _part(facts: Facts, file: File) -> tuple[File, Range]:
    cost_s = _moved(facts, file).ns / 1e9
    return file, Range(0.5 * cost_s, cost_s)


def _advice(facts: Facts, group: Group) -> Advice:
    calls = sum(facts.called(one, _REDEF) for one in group.files)
    moved = sum((_moved(facts, one) for one in group.files), _NONE)
    span = sum(one.write.span for one in group.files)
    return Advice(
        "late-definitions", group.what, group.paths,
        f"{counted(calls, 'call')} of nc_redef move {amount(moved.bytes)} (read and written within "
        f"nc_redef and nc_enddef) for {amount(span)} of file: {seconds(moved.ns / 1e9)}.",
        facts.saving([_part(facts, one) for one in group.files], moved.requests),
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
