# SPDX-License-Identifier: Apache-2.0
"""What a step would be shorter if the I/O on one file, or of one rank, cost nothing: a replay each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weir.analysis.lines import Cells, LineOf, call_rows
from weir.analysis.names import NameTable
from weir.analysis.remote import for_each
from weir.analysis.step import StepData
from weir.report.frame.build import StepReport, figure
from weir.report.waits.summary import Synchronisation, synchronisation_of
from weir.trace._abi import NO_ROW

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
            of_strand = account.operations.location_of_strand == one.location
            free = np.where(of_strand[account.operations.replay.strand], account.own_ns, 0)
            made[int(account.locations.number[one.location])] = account.operations.replay.run(
                free).saved_ns
    return made


def _of_files(step: StepReport, found: Synchronisation, paths: list[str]) -> dict[str, int]:
    """cost: a pass over the I/O of the processes that use the files, and a replay for each."""
    if not paths:
        return {}
    account = found.account
    numbers = np.array([step.names.number(path) for path in paths], np.int32)
    replay = account.operations.replay
    begins, ends = replay.gaps()
    rows = np.searchsorted(replay.strand, np.arange(len(account.lines) + 1)).tolist()
    of_strands = [slice(*pair) for pair in zip(rows, rows[1:])]
    pieces = [(line, numbers, begins[at], ends[at]) for line, at in zip(account.lines, of_strands)]
    free = np.zeros((len(paths), len(replay)), np.int64)
    for at, ns in zip(of_strands, for_each(_in_front, step.data, step.names, pieces)):
        free[:, at] = ns
    return {path: replay.run(one).saved_ns for path, one in zip(paths, free)}


def _in_front(
    data: StepData, names: NameTable, line: LineOf, numbers: np.ndarray, begins: np.ndarray,
    ends: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """How long a strand was in I/O on each of some files, in front of each of its operations."""
    rows = call_rows(data, names, line)
    rows.table["row"] = NO_ROW
    for place, number in enumerate(numbers.tolist()):
        rows.table["row"][rows.name == number] = place
    if (rows.table["row"] == NO_ROW).all():
        return np.zeros((len(numbers), len(begins)), np.int64)
    edges = np.stack([begins, ends], 1).ravel()
    return np.minimum(Cells(data, line, rows, edges).time(len(numbers))[:, ::2], ends - begins)
