# SPDX-License-Identifier: Apache-2.0
"""Finding stripes: a file has too few stripes for its size, or more than it has bytes for."""

from __future__ import annotations

import math
from collections.abc import Iterator

from weir.advise.frame.facts import Facts, File
from weir.advise.frame.finding import Advice, Finding, Limit
from weir.advise.frame.saving import Range
from weir.advise.frame.speeds import LEAST_SCALING
from weir.report.frame.amounts import amount, counted, seconds
from weir.report.frame.figures import size as size_text
from weir.report.mpi_io.compute import MpiFile, mpi_files_of

EACH = Limit("size of the file for each of its stripes, more than", 8 << 30, "B",
    "recommended by NERSC (Lustre striping): 8 stripes from 1 GB on, 24 from 10 GB, 72 from 100 GB")
FEW = Limit("stripes of a file that has fewer full ones", 4, "stripes",
    "chosen: each stripe costs a request to its server when the file is created and removed")
SPREAD_BYTES = 1 << 30  # for each stripe that is advised


def _size(file: File) -> int:
    return max(file.read.end, file.write.end)


def _advice(facts: Facts, one: MpiFile, file: File) -> Iterator[Advice]:
    size, stripes, unit = _size(file), one.stripes or 0, one.stripe_bytes or 0
    moved_s = file.read.seconds + file.write.seconds
    if size > EACH.value * stripes and max(file.read.ranks, file.write.ranks) > 1:
        wanted = math.ceil(size / SPREAD_BYTES)
        part = 1 - stripes / wanted
        yield Advice(
            "stripes", facts.shown(one.file), (one.file,),
            f"{amount(size)} lie on {counted(stripes, 'stripe')}: {seconds(moved_s)} of all ranks.",
            facts.saving([(file, Range(LEAST_SCALING * part, part).times(moved_s))], 0),
            f"Make the directory with lfs setstripe -c {wanted}, or set the hint striping_factor = "
            f"{wanted}.",
        )  # fmt: skip
    full = max(1, math.ceil(size / unit)) if unit else stripes
    if stripes >= FEW.value and full < stripes:
        calls, ns = file.of_class("OCM")
        yield Advice(
            "stripes", facts.shown(one.file), (one.file,),
            f"{amount(size)} are spread over {counted(stripes, 'stripe')} of {size_text(unit)}, of "
            f"which {full} hold a byte; opens, closes and queries take {seconds(ns / 1e9)}.",
            facts.saving([(file, Range(0.0, (1 - full / stripes) * ns / 1e9))], 0),
            f"Make the directory of small files with lfs setstripe -c 1 ({calls} calls ask all "
            "servers).",
        )  # fmt: skip


def find(facts: Facts) -> Iterator[Advice]:
    seen: set[str] = set()
    for step in facts.report.steps:
        for one in mpi_files_of(step):
            file = facts.files.get(one.file)
            if file is None or not one.stripes or one.file in seen:
                continue
            seen.add(one.file)
            yield from _advice(facts, one, file)


STRIPES = Finding(
    name="stripes",
    asks="Has a file too few stripes for its size, or more than it has bytes for?",
    shrinks="I/O",
    limits=(EACH, FEW),
    page="guide/mpi-io.md",
    table="mpi-io",
    cure="",
    decides="how long each server takes to open its part of the file",
    find=find,
)
