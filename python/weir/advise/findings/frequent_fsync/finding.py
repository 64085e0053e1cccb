# SPDX-License-Identifier: Apache-2.0
"""Finding frequent-fsync: a program makes small amounts durable, one after the other."""

from __future__ import annotations

import numpy as np

from weir.advise.frame.facts import Facts, File, Files
from weir.advise.frame.finding import Advice, Finding
from weir.advise.frame.grouping import Group, find_by_pattern
from weir.advise.frame.saving import Range, request_count, saved
from weir.advise.frame.finding import Limit
from weir.report.frame.amounts import amount, number, seconds
from weir.report.frame.figures import size as binary

TIMES = Limit("fsyncs of the files", 20, "fsyncs",
    "chosen: a few files, or transactions of a database (three or four each), need as many")
LITTLE = Limit("size of what is written for each fsync, at most", 8 << 20, "B",
    "chosen: 8 MiB take a disk about as long as the fsync itself")
ENOUGH = 64 << 20  # bytes that may be lost: one fsync for each
_SYNCS = ("fsync", "fdatasync", "msync", "sync_file_range")


def _candidates(facts: Facts, files: Files) -> np.ndarray:
    return files.of(_SYNCS)[0] > 1


def _part(file: File) -> tuple[File, Range]:
    count, ns = file.of(_SYNCS)
    left = min(count, request_count(file.written, ENOUGH)) / count
    return file, saved(ns / 1e9, Range(left * ns / 1e9, (0.5 + left / 2) * ns / 1e9))


def _each(size: int, count: int) -> str:
    return f", one for each {amount(size / count)} written" if size else (
        "; no bytes are written to it (of a directory, fsync makes names durable)")


def _advice(facts: Facts, group: Group) -> Advice:
    counts, times = zip(*(one.of(_SYNCS) for one in group.files))
    size = sum(one.written for one in group.files)
    return Advice(
        "frequent-fsync", group.what, group.paths,
        f"{number(sum(counts))} fsyncs take {seconds(sum(times) / 1e9)}{_each(size, sum(counts))}.",
        facts.saving([_part(one) for one in group.files], sum(counts)
            - sum(request_count(one.written, ENOUGH) for one in group.files)),
        f"Call fsync once after the last write, or once for each {binary(ENOUGH)}. No layer does "
        "that: what fsync acknowledged must be durable.",
    )  # fmt: skip


def _are_enough(facts: Facts, group: Group) -> bool:
    count = sum(one.of(_SYNCS)[0] for one in group.files)
    size = sum(one.written for one in group.files)
    return count >= TIMES.value and size <= LITTLE.value * count


FREQUENT_FSYNC = Finding(
    name="frequent-fsync",
    asks="Are small amounts made durable, one after the other?",
    shrinks="I/O",
    limits=(TIMES, LITTLE),
    page="guide/advise.md",
    table="summary",
    cure="",
    find=find_by_pattern(_candidates, _advice, _are_enough),
)
