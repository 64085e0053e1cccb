# SPDX-License-Identifier: Apache-2.0
"""Finding node-interleaving: each rank of a node moves its file, or its part, in order, but what
the file system gets of the node is a mixture in which hardly any request follows on the last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from weir.advise.frame.facts import Facts, File
from weir.advise.frame.finding import Advice, Finding, Limit
from weir.advise.frame.saving import Range
from weir.advise.findings.small_requests.finding import SLOW, is_small
from weir.report.frame.amounts import counted, seconds, share
from weir.report.interleaving.compute import interleaving_of

RANKS = Limit("ranks of a node that move bytes", 4, "ranks",
    "chosen: of fewer, read-ahead holds the streams")
IN_ORDER = Limit("share of requests that go on where the rank's last one ended", 0.8, "share",
    "with less the ranks themselves are not in order")
MIXED = Limit("the same share for the node, at most", 0.3, "share",
    "a third of what is in order of a rank: workload olam has 0.08 with 16 ranks of a node, 0.98 "
    "with one")
MANY = Limit("requests of a node", 2000, "requests",
    "chosen: the order of fewer requests changes less time than two runs differ by")
MOST_GAIN = 0.5  # of the time of the requests: seeks, locks, read-ahead that is thrown away


def _candidates(facts: Facts) -> dict[str, File]:
    """In order for their ranks, slow, and not of the kind that other findings are about."""
    files = facts.files
    mask = np.logical_or.reduce([
        (way.calls > 0) & way.is_slow(SLOW.value) & ~is_small(way)
        & (files.in_order(way) >= IN_ORDER.value) for way in (files.read, files.write)])
    return {one.path: one for one in facts.among(mask) if not facts.is_local(one.path)}


def _mixed(rows: list[dict[str, Any]]) -> bool:
    calls = sum(row["calls"] for row in rows)
    of_rank, of_node = (sum(row[key] for row in rows) for key in ("of_rank", "of_node"))
    return (calls >= MANY.value and of_rank >= IN_ORDER.value * calls
        and of_node <= MIXED.value * calls)


def find(facts: Facts) -> Iterator[Advice]:
    files = _candidates(facts)
    if facts.ranks < RANKS.value * facts.nodes or not files:
        return
    by_node: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in interleaving_of(facts.report):
        if row["file"] in files:
            by_node.setdefault((row["step"], row["node"]), []).append(row)
    for (step, node), rows in by_node.items():
        ranks = max(len(rows), max(row["ranks"] for row in rows))
        if ranks >= RANKS.value and _mixed(rows):
            yield _advice(facts, step, node, rows, ranks, files)


def _advice(facts: Facts, step: str, node: str, rows: list[dict[str, Any]], ranks: int,
        files: dict[str, File]) -> Advice:
    calls = sum(row["calls"] for row in rows)
    of_rank, of_node = (sum(row[key] for row in rows) for key in ("of_rank", "of_node"))
    paths = tuple(row["file"] for row in rows)
    parts = [(files[path], Range(0.0, MOST_GAIN * files[path].ns / 1e9)) for path in paths]
    return Advice(
        "node-interleaving", f"node {node} in step {step}", paths,
        f"of {counted(calls, 'request')} of {ranks} ranks {share(of_rank, calls)} begin where the "
        f"previous one of the rank ended, and {share(of_node, calls)} where the previous one of "
        f"the node ended: "
        f"{seconds(sum(files[path].ns for path in paths) / 1e9)}.",
        facts.saving(parts, 0),
        "Let one rank of a node do the I/O of all (layers forward and gather, servers of libweir), "
        "or move more with each request.",
        step=step,
    )  # fmt: skip


NODE_INTERLEAVING = Finding(
    name="node-interleaving",
    asks="Do ranks of a node, each in order, mix their requests at the file system?",
    shrinks="I/O",
    limits=(RANKS, IN_ORDER, MIXED, MANY),
    page="guide/patterns.md",
    table="interleaving",
    cure="",
    decides="whether the servers see the requests of a node in this order",
    find=find,
)
