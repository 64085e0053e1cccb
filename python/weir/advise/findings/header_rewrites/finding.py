# SPDX-License-Identifier: Apache-2.0
"""Finding header-rewrites: classic netCDF writes the number of records, or the header, anew at each
nc_sync."""

from __future__ import annotations

import numpy as np

from weir.advise.frame.facts import Facts, File, Files
from weir.advise.frame.finding import Advice, Finding, Limit
from weir.advise.frame.grouping import Group, find_by_pattern
from weir.advise.frame.saving import Range
from weir.report.frame.amounts import number, seconds

TIMES = Limit("syncs of netCDF on the files", 50, "syncs",
    "chosen: one a time level of a forecast is usual; fewer cost milliseconds")
AGAIN = Limit("size of what is written again for each sync", 4, "B",
    "the number of records, which a sync writes where a record was added, has 4 bytes")
_SYNC = ("nc_sync", "ncmpi_sync")
OF_A_SYNC = Range(1, 2)  # requests: the header, and the end of a block that was not full


def _candidates(facts: Facts, files: Files) -> np.ndarray:
    return files.mask(facts.functions)


def _is_one(facts: Facts, file: File) -> bool:
    syncs = facts.called(file, _SYNC)
    return syncs > 0 and file.write.again >= AGAIN.value * syncs


def _part(facts: Facts, file: File) -> tuple[File, Range]:
    syncs, write = facts.called(file, _SYNC), file.write
    count = min(syncs, write.calls)
    return file, Range(OF_A_SYNC.low, OF_A_SYNC.high).times(count * write.call_s).at_most(
        write.seconds)


def _advice(facts: Facts, group: Group) -> Advice:
    syncs = sum(facts.called(one, _SYNC) for one in group.files)
    return Advice(
        "header-rewrites", group.what, group.paths,
        f"{number(syncs)} calls of nc_sync write the header or its number of records anew; all "
        f"writes take {seconds(sum(one.write.seconds for one in group.files))}.",
        facts.saving([_part(facts, one) for one in group.files], syncs),
        "Call nc_sync for what another program reads meanwhile alone; write several time levels "
        "with one call.",
    )  # fmt: skip


def _are_enough(facts: Facts, group: Group) -> bool:
    return sum(facts.called(one, _SYNC) for one in group.files) >= TIMES.value


HEADER_REWRITES = Finding(
    name="header-rewrites",
    asks="Does classic netCDF write its header again and again?",
    shrinks="I/O",
    limits=(TIMES, AGAIN),
    page="guide/patterns.md",
    table="patterns",
    cure="",
    find=find_by_pattern(_candidates, _advice, _are_enough, _is_one),
)
