# SPDX-License-Identifier: Apache-2.0
"""Finding definitions: each rank reads the same small files: decoding tables, namelists."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterator

from weir.advise.frame.facts import Facts, File
from weir.advise.frame.finding import Advice, Finding
from weir.advise.frame.libraries import libraries
from weir.advise.findings.same_bytes.finding import LARGE
from weir.advise.frame.saving import Range
from weir.advise.frame.finding import Limit
from weir.report.frame.amounts import counted, seconds

RANKS = Limit("share of the ranks that read each of them", 0.9,
    "all of them, but for one or two that have another part")
_ECCODES = (" Or keep the tables of ecCodes on the node (ECCODES_DEFINITION_PATH), or in the "
    "library (built with MEMFS).")
DEPTH = 3  # last directories of a path that are not distinguished


def _is_one(facts: Facts, file: File) -> bool:
    way = file.read
    return (way.ranks > 1 and way.ranks >= RANKS.value * facts.ranks and way.span <= LARGE.value
        and not file.write.bytes)


def _common(paths: list[str]) -> str:
    return posixpath.commonpath(paths) if len(paths) > 1 else paths[0]


def _advice(facts: Facts, files: list[File]) -> Advice:
    ns, opens = sum(one.ns for one in files), sum(one.of_class("O")[0] for one in files)
    paths = [one.path for one in files]
    parts = [(one, Range(0.5, 1.0).times((1 - 1 / one.read.ranks) * one.ns / 1e9))
        for one in files]
    return Advice(
        "definitions", facts.shown(_common(paths)), tuple(paths),
        f"each of {facts.ranks} ranks reads the same {counted(len(files), 'small file')}: "
        f"{counted(opens, 'open')}, {seconds(ns / 1e9)} of all ranks.",
        facts.saving(parts, int(opens * (1 - 1 / facts.ranks))),
        "Read on one rank and broadcast." + (_ECCODES if "eccodes" in libraries(files) else ""),
    )  # fmt: skip


def find(facts: Facts) -> Iterator[Advice]:
    by_directory: dict[str, list[File]] = defaultdict(list)
    for one in facts.bare:
        if _is_one(facts, one):
            parts = one.path.split("/")
            by_directory["/".join(parts[: max(2, len(parts) - DEPTH)])].append(one)
    for files in by_directory.values():
        yield _advice(facts, files)


DEFINITIONS = Finding(
    name="definitions",
    asks="Does each rank read the same small files?",
    shrinks="I/O",
    limits=(RANKS, LARGE),
    page="guide/advise.md",
    table="files",
    cure="",
    find=find,
)
