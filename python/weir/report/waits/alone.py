# SPDX-License-Identifier: Apache-2.0
"""What a step would be shorter if the I/O on one file, or of one rank, cost nothing: a replay each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weir.analysis.names import NameTable
from weir.analysis.remote import for_each
from weir.analysis.step import StepData
from weir.report.frame.build import StepReport, figure
from weir.report.waits.records import Threads, calls_of
from weir.report.waits.summary import Synchronisation, synchronisation_of

MOST = 5  # files, and ranks
LEAST_SHARE = 0.01  # of the step


@dataclass(frozen=True)
class Alone:
    """Saved ns by path and by rank, for those with most critical time."""

    files: dict[str, int]
    ranks: dict[int, int]


@figure
def alone_of(step: StepReport) -> Alone:
    found = synchronisation_of(step)
    if found.waits is None:
        return Alone({}, {})
    least = LEAST_SHARE * step.wall_ns
    paths = [one.file for one in found.waits.files if one.critical_ns > least][:MOST]
    return Alone(_of_files(step, found, paths), _of_ranks(found, least))


def _of_ranks(found: Synchronisation, least_ns: float) -> dict[int, int]:
    account, made = found.account, {}
    for one in account.critical.ranks[:MOST]:
        if one.io_ns > least_ns:
            of_rank = account.operations.location == one.location
            free = np.where(of_rank, account.own_ns, 0)
            made[int(account.locations.rank[one.location])] = account.operations.replay.run(
                free).saved_ns
    return made


def _of_files(step: StepReport, found: Synchronisation, paths: list[str]) -> dict[str, int]:
    """cost: a pass over the I/O of the processes that use the files, and a replay for each."""
    if not paths:
        return {}
    account = found.account
    numbers = np.array([step.names.number(path) for path in paths], np.int32)
    columns = step.data.columns
    users = set(np.unique(columns.member[np.isin(columns.name, numbers)]).tolist())
    replay = account.operations.replay
    begins, ends = replay.gaps()
    free = np.zeros((len(paths), len(replay)), np.int64)
    pieces, rows = [], []
    for strand in np.flatnonzero(account.operations.main).tolist():
        location = int(account.operations.location_of_strand[strand])
        members = tuple(one for one in account.locations.members[location] if one in users)
        if members:
            at = slice(*np.searchsorted(replay.strand, [strand, strand + 1]).tolist())
            rows.append(at)
            pieces.append((members, account.others[location], numbers, begins[at], ends[at]))
    for at, ns in zip(rows, for_each(_in_front, step.data, step.names, pieces)):
        free[:, at] = ns
    return {path: replay.run(one).saved_ns for path, one in zip(paths, free)}


def _in_front(
    data: StepData, names: NameTable, members: tuple[int, ...], without: Threads,
    numbers: np.ndarray, begins: np.ndarray, ends: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """How long a rank was in I/O on each of some files, in front of each of its operations."""
    found = np.zeros((len(numbers), len(begins)), np.int64)
    for calls in calls_of(data, members, names, without):
        own = calls.own()
        for row, number in zip(found, numbers.tolist()):
            is_of = own.name == number
            start, end = own.start[is_of], own.end[is_of]
            at = np.minimum(np.searchsorted(ends, start, "right"), len(ends) - 1)
            inside = np.minimum(end, ends[at]) - np.maximum(start, begins[at])
            np.add.at(row, at, np.maximum(inside, 0))
    return np.minimum(found, ends - begins)
