# SPDX-License-Identifier: Apache-2.0
"""Finding definitions: each rank reads the same small files: decoding tables, namelists."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from weir.advise.frame.facts import Facts, File, Files
from weir.advise.frame.finding import Advice, Finding
from weir.advise.frame.libraries import libraries
from weir.advise.findings.same_bytes.finding import LARGE
from weir.advise.frame.saving import Range, Saving
from weir.advise.frame.finding import Limit
from weir.report.frame.amounts import counted, seconds
from weir.trace.ops import ops

RANKS = Limit("share of the ranks that read each of them", 0.9, "share",
    "all of them, but for one or two that have another part")
LITTLE = Limit("size of what all ranks read of a file, at most", LARGE.value, "B",
    "of more, same-bytes is the finding")
_ECCODES = (" Or keep the tables of ecCodes on the node (ECCODES_DEFINITION_PATH), or in the "
    "library (built with MEMFS).")
_TABLES = "/eccodes/definitions/"
DEPTH = 3  # last directories of a path that are not distinguished


def _candidates(facts: Facts, files: Files) -> np.ndarray:
    way = files.read
    return ((way.ranks > 1) & (way.ranks >= RANKS.value * facts.ranks)
        & (way.bytes <= LITTLE.value) & (files.write.bytes == 0))


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


@dataclass(frozen=True)
class Tables:
    """Files of ecCodes' definitions, which figures leave out as files of the system."""

    files: int
    opens: int
    ns: int


def _tables(facts: Facts) -> Tables:
    """Of all ranks and steps. The rows of `excluded` are sums over ranks."""
    report, opens = facts.report, [one.value for one in ops().values() if one.op_class == "O"]
    names: set[int] = set()
    calls = ns = 0
    for step in report.steps:
        rows = step.excluded
        numbers = [one for one in np.unique(rows.name).tolist() if _TABLES in report.names[one]]
        its = rows.where(np.isin(rows.name, numbers))
        names |= set(numbers)
        calls += int(its.app_calls[np.isin(its.op, opens)].sum())
        ns += int(its.own_ns.sum())
    return Tables(len(names), calls, ns)


def _of_eccodes(facts: Facts) -> Iterator[Advice]:
    found, ranks = _tables(facts), facts.ranks
    if ranks < 2 or not found.files or found.opens < RANKS.value * ranks * found.files:
        return
    all_s = found.ns / 1e9
    io = Range(0.5, 1.0).times((1 - 1 / ranks) * all_s)
    yield Advice(
        "definitions", _TABLES.strip("/"), (),
        f"each of {ranks} ranks reads the {counted(found.files, 'table')} that ecCodes decodes "
        f"with: {counted(found.opens, 'open')}, {seconds(all_s)} of all ranks.",
        Saving(io, None, Range(0.0, all_s / ranks), int(found.opens * (1 - 1 / ranks))),
        "Decode on one rank and broadcast." + _ECCODES,
        step=facts.report.steps[0].name,
    )  # fmt: skip


def find(facts: Facts) -> Iterator[Advice]:
    yield from _of_eccodes(facts)
    by_directory: dict[str, list[File]] = defaultdict(list)
    for one in facts.among(_candidates(facts, facts.files)):
        parts = one.path.split("/")
        by_directory["/".join(parts[: max(2, len(parts) - DEPTH)])].append(one)
    for files in by_directory.values():
        yield _advice(facts, files)


DEFINITIONS = Finding(
    name="definitions",
    asks="Does each rank read the same small files?",
    shrinks="I/O",
    limits=(RANKS, LITTLE),
    page="guide/advise.md",
    table="files",
    cure="",
    decides="whether ranks wait for those that read the tables last",
    find=find,
)
