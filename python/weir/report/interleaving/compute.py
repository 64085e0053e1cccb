# SPDX-License-Identifier: Apache-2.0
"""Of each file on each node: the requests that begin where the one before ended, of the same rank,
of any rank on the file, of the node.

A request is a read or write at the lowest level that weir sees, with a known offset, as in the
table of access patterns; its place in the order is its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from weir.analysis.names import NameTable
from weir.analysis.remote import pass_over_records
from weir.analysis.step import StepData
from weir.report.files.compute import files_of
from weir.report.frame.build import Report, figure
from weir.report.interleaving.merge import Follower, Requests, merged
from weir.trace.events import read_transfers

_ROWS = 1 << 13  # of a process in memory
COUNTS = ("calls", "bytes", "of_rank", "of_file", "of_node")


@figure
def interleaving_of(report: Report) -> list[dict[str, Any]]:
    """A row for each step, node and file with requests; first those where most calls are in order
    for a rank and not for the node."""
    files = [one for one in files_of(report) if one.bytes]
    wanted = {report.names.number(name): at for at, one in enumerate(files)
        for name in (one.file, *one.also)}
    rows = []
    for step in report.steps:
        if step.level != "trace":
            continue
        for node, at, ranks, counts in _of_step(step.data, report.names, step.members, wanted,
                len(files)):
            row = dict(zip(COUNTS, counts))
            shares = {f"{key}_share": row[key] / row["calls"] for key in COUNTS[2:]}
            rows.append({"step": step.name, "node": node, "file": files[at].file, "ranks": ranks,
                **row, **shares})
    return sorted(rows, key=lambda row: (row["of_node"] - row["of_rank"], -row["calls"],
        row["node"], row["file"]))


@pass_over_records
def _of_step(data: StepData, names: NameTable, members: np.ndarray, wanted: dict[int, int],
        files: int) -> list[tuple[str, int, int, list[int]]]:
    """Node, number of the file, ranks, counts."""
    found = []
    for index, file in enumerate(data.files):
        counts, ranks = _of_node(data, index, members, wanted, files)
        found += [(file.node, at, int(ranks[at]), counts[at].tolist())
            for at in np.flatnonzero(counts[:, 0]).tolist()]
    return found


def _of_node(data: StepData, index: int, members: np.ndarray, wanted: dict[int, int],
        files: int) -> tuple[np.ndarray, np.ndarray]:
    """COUNTS of each file, and the number of its ranks (processes without one count as one each).
    """
    processes = len(data.files[index].processes)
    by_rank, by_file, by_node = Follower(processes), Follower(files), Follower(1)
    counts, users = np.zeros((files, len(COUNTS)), np.int64), np.zeros(0, np.int64)
    for window in merged(_streams(data, index, members, wanted)):
        follows = [by_rank.follows(window, window.of), by_file.follows(window, window.file),
            by_node.follows(window, np.zeros(len(window), np.int64))]
        for at, amount in enumerate((1, window.end - window.begin, *follows)):
            np.add.at(counts[:, at], window.file, amount)
        users = np.union1d(users, window.file * processes + window.of)
    return counts, np.bincount(users // max(1, processes), minlength=files)


def _streams(data: StepData, index: int, members: np.ndarray,
        wanted: dict[int, int]) -> list[Iterator[Requests]]:
    """One of each process that is chosen."""
    first, file = data.first_member(index), data.files[index]
    chosen = members[first : first + len(file.processes)]
    numbers = data.name_numbers[index].tolist()
    file_of = np.array([wanted.get(number, -1) for number in numbers], np.int64)
    if not (file_of >= 0).any():
        return []
    return [_stream(data, index, process, file_of)
        for process in np.flatnonzero(chosen).tolist()]


def _stream(data: StepData, index: int, process: int, file_of: np.ndarray) -> Iterator[Requests]:
    file, line = data.files[index], data.lines[index]
    alone = np.zeros(len(file.processes), bool)
    alone[process] = True
    for batch in read_transfers(file, line.native(), file_of >= 0, alone, _ROWS):
        offset, ended = batch["offset"], batch["begin_ns"] + batch["length_ns"]
        known = Requests(ended, batch["process"].astype(np.int64), file_of[batch["text"]], offset,
            offset + batch["bytes"]).at(offset >= 0)
        if len(known):
            yield known
