# SPDX-License-Identifier: Apache-2.0
"""I/O that ranks do for others, by node: what they received by MPI, and what MPI-IO gave them to
write, beside what they wrote.

Messages have a sender and a receiver; of collectives, MPI_Gather and MPI_Gatherv send the parts of
all other ranks to the root, MPI_Bcast, MPI_Scatter and MPI_Scatterv from the root to them. Records
do not say what a message is for: ranks that exchange what they compute send as much as they
receive, so that of messages only those count as forwarded that a rank received beyond what it sent.
What MPI-IO exchanges between ranks has no record: a rank that
writes more of a file than it asked of MPI-IO writes for those that wrote less.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from weir.analysis.columns import Columns, distinct
from weir.analysis.in_turn import in_turn
from weir.analysis.names import NO_NAME, NameTable
from weir.analysis.ranks import in_order
from weir.analysis.remote import pass_over_records
from weir.analysis.step import StepData, name_numbers
from weir.report.frame.build import Report, StepReport, figure
from weir.report.mpi_io.compute import routine
from weir.report.waits.locations import Locations, locations_of
from weir.trace import TraceFile
from weir.trace._abi import NO_ROW
from weir.trace.file import threads_for
from weir.trace.ops import MPI, MPI_IO, POSIX, mpi_routines, op_named, ops

LEAST_SHARE = 0.01  # of what the busiest rank moves: a rank with less does no I/O to speak of
TO_ROOT = ("MPI_Gather", "MPI_Gatherv", "MPI_Igather", "MPI_Igatherv")
FROM_ROOT = ("MPI_Bcast", "MPI_Scatter", "MPI_Scatterv", "MPI_Ibcast", "MPI_Iscatter",
    "MPI_Iscatterv")
RECORDED = ("MPI_collective", "MPI_start_collective", "MPI_receive", "MPI_wait")
# Of a rank, bytes: written and read by its calls to the system; received from other ranks, and from
# other nodes; of the received, gathered, and messages beyond those sent; written for others, as
# MPI-IO shows; sent to others.
SUMS = ("written", "read", "received", "remote", "net", "mpi_io", "sent")


@figure
def forwarding_of(report: Report) -> list[dict[str, Any]]:
    """A row for each step and node; none of a step in which no rank writes for others, or MPI was
    not recorded call by call."""
    if report.choice.rank is not None:
        return []
    return [row for step in report.steps for row in _of_step(step)]


def may_forward(report: Report) -> bool:
    """Whether ranks that hardly write moved bytes by MPI, or ranks wrote through MPI-IO; without a
    pass over the records."""
    return report.choice.rank is None and any(map(_may_forward, report.steps))


def _may_forward(step: StepReport) -> bool:
    columns = step.data.sums.by_member
    if not _is_recorded(step):
        return False
    if np.isin(columns.op, _writes()).any():
        return True
    exchanged = np.isin(columns.op, [op_named(name).value for name in (*RECORDED, "MPI_awaited")])
    written = np.zeros(len(step.data.members))
    mine = step.of_members.where(step.of_members.by_code("W"))
    np.add.at(written, mine.member, mine.moved)
    hardly = written < LEAST_SHARE * written.max(initial=0)
    return bool((columns.bytes[exchanged & hardly[columns.member]] > 0).any())


def _is_recorded(step: StepReport) -> bool:
    columns = step.data.sums.by_member
    wanted = [op_named(name).value for name in RECORDED]
    return step.level == "trace" and len(distinct(columns.member[np.isin(columns.op, wanted)])) > 1


def _of_step(step: StepReport) -> Iterator[dict[str, Any]]:
    if not _is_recorded(step):
        return
    data = step.data
    speakers = distinct(data.sums.by_member.member[data.sums.by_member.layer == MPI])
    locations = locations_of(data, speakers.tolist())
    sums = np.zeros((len(SUMS), len(locations)))
    columns = step.of_members.where(locations.of_member[step.of_members.member] >= 0)
    own = locations.of_member[columns.member]
    for at, code in enumerate("WR"):
        mask = columns.by_code(code)
        np.add.at(sums[at], own[mask], columns.moved[mask])
    _add_messages(sums, data, step.names, locations)
    sums[SUMS.index("mpi_io")] = _for_others(step, locations)
    written, _, _, _, net, mpi_io, _ = sums
    moved = sums[:2].sum(axis=0)
    does_io = moved >= max(1.0, LEAST_SHARE * moved.max(initial=0))
    forwarded = np.where(does_io, np.minimum(written, net + mpi_io), 0)
    if forwarded.sum() < max(1.0, LEAST_SHARE * written.sum()):
        return
    for node in np.unique(locations.node).tolist():
        here = locations.node == node
        mine = np.flatnonzero(here & does_io)
        figures = {name: int(sums[at][mine].sum()) for at, name in enumerate(SUMS)}
        yield {
            "step": step.name, "node": data.files[node].node, "ranks": int(here.sum()),
            "io_ranks": len(mine), "which": tuple(map(step.names.ranks.__getitem__,
                in_order(locations.number[mine].tolist()))),
            **{f"{name}_bytes": count for name, count in figures.items()},
            "forwarded_bytes": int(forwarded[mine].sum()),
            "forwarded_share": float(forwarded[mine].sum() / figures["written"])
            if figures["written"] else None,
        }  # fmt: skip


def _add_messages(sums: np.ndarray, data: StepData, names: NameTable, locations: Locations) -> None:
    """received, remote, net and sent of each rank."""
    received, remote, net, sent = (sums[SUMS.index(name)]
        for name in ("received", "remote", "net", "sent"))
    member, name, code, peer, calls, count = _exchanges(data, names)
    own = locations.of_member[member]

    def add(of: np.ndarray, to: np.ndarray, moved: np.ndarray) -> None:
        kept = (of >= 0) & (to >= 0) & (of != to)
        of, to, moved = of[kept], to[kept], moved[kept]
        np.add.at(received, to, moved)
        np.add.at(remote, to, np.where(locations.node[of] != locations.node[to], moved, 0))
        np.add.at(sent, of, moved)

    at = np.flatnonzero((code == 0) & (own >= 0))
    known = np.where(peer[at] == NO_ROW, -1, peer[at].astype(np.int64))
    add(locations.at(locations.program[own[at]], known), own[at], count[at])
    net += np.maximum(0, received - sent)
    before = received.copy()
    for is_to_root, wanted in ((True, TO_ROOT), (False, FROM_ROOT)):
        values = [value for value, word in mpi_routines().items() if word in wanted]
        at = np.flatnonzero(np.isin(code, values) & (own >= 0))
        for rows in _by_communicator(at, locations.program[own[at]], name[at]):
            root = rows[peer[rows] == 1]
            parts = rows[peer[rows] == 0]
            share = calls[root] / max(1, calls[root].sum())  # of each root, where several were
            for place, part in zip(own[root].tolist(), share.tolist()):
                others, moved = own[parts], count[parts] * part
                ends = np.full(len(others), place)
                add(*((others, ends) if is_to_root else (ends, others)), moved)
        if is_to_root:
            net += received - before


def _by_communicator(at: np.ndarray, program: np.ndarray, name: np.ndarray) -> list[np.ndarray]:
    groups: dict[tuple[int, int], list[int]] = defaultdict(list)
    for row, key in zip(at.tolist(), zip(program.tolist(), name.tolist())):
        groups[key].append(row)
    return [np.array(rows) for rows in groups.values()]


@pass_over_records
def _exchanges(data: StepData, names: NameTable) -> tuple[np.ndarray, ...]:
    """Columns: member, number of the communicator's name, routine (0: received), peer, calls,
    bytes."""
    parts: list[tuple[np.ndarray, ...]] = [(np.empty(0, np.int64),) * 6]
    pieces = [(file, threads_for(file.header.file_bytes)) for file in data.files]
    for index, found in enumerate(in_turn(TraceFile.exchanges, pieces)):
        file = data.files[index]
        if len(found):
            name = name_numbers(file, found, names, data.name_numbers[index])
            member = found["process"].astype(np.int64) + data.first_member(index)
            parts.append((member, name, *(found[key] for key in ("routine", "peer", "calls",
                "bytes"))))
    return tuple(np.concatenate(column) for column in zip(*parts))


def _for_others(step: StepReport, locations: Locations) -> np.ndarray:
    """Bytes that each rank wrote to files of MPI-IO beyond what it asked to write, as far as others
    asked for more than they wrote."""
    data, is_asked = step.data, lambda some: (some.layer == MPI_IO) & np.isin(some.op, _writes())
    by_file = data.sums.by_file
    names = np.setdiff1d(by_file.name[is_asked(by_file)], [*data.excluded, NO_NAME])
    columns = data.where(lambda some: np.isin(some.name, names)
        & (is_asked(some) | (some.layer == POSIX) & some.by_code("W")))
    columns = columns.where(locations.of_member[columns.member] >= 0)
    asked, made = columns.where(is_asked(columns)), columns.where(columns.layer == POSIX)
    found = np.zeros(len(locations))
    for name in np.unique(asked.name).tolist():
        wanted, done = (_by_location(one.where(one.name == name), locations)
            for one in (asked, made))
        more, less = np.maximum(done - wanted, 0), np.maximum(wanted - done, 0)
        if more.any():
            found += more * min(1.0, less.sum() / more.sum())
    return found


def _by_location(columns: Columns, locations: Locations) -> np.ndarray:
    sums = np.zeros(len(locations))
    np.add.at(sums, locations.of_member[columns.member], columns.bytes)
    return sums


def _writes() -> list[int]:
    """Operations of MPI-IO whose records have bytes to be written."""
    found = {value: routine(op.name) for value, op in ops().items() if op.layer == MPI_IO}
    return [value for value, kind in found.items() if kind is not None and kind.direction == "W"]
