# SPDX-License-Identifier: Apache-2.0
"""Finding aggregators: too few, too many, and on too few nodes; and as they should be."""

from __future__ import annotations

import pytest
from advised import KIB, MIB, MS, US, advised, names, the
from wait_trace import WaitTrace

FILE = "/scratch/an/all.nc"


def collective(aggregators: list[int], requests: int = 32, size: int = MIB, each: int = 10 * MS):
    """All ranks call MPI_File_write_all; some of them write, at the same time."""

    def program(trace: WaitTrace) -> None:
        for rank in range(trace.ranks):
            trace.mpi_io(rank, "MPI_File_open", FILE, MS)
        trace.barrier()
        begun, at = max(trace.now), 0
        for rank in aggregators:
            for _ in range(requests):
                trace.io(rank, each, FILE, "pwrite", size, at)
                at += size
        leave = max(trace.now)
        for rank in range(trace.ranks):
            trace.now[rank] = begun
            trace.io(rank, leave - begun, FILE, "MPI_File_write_all", at // trace.ranks, 0)

    return program


@pytest.mark.parametrize(("aggregators", "said", "share"), [
    ([0], "1 aggregator for 4 nodes", 0.75),
    ([0, 4], "2 aggregators on 1 node of 4", 0.5),
    ([0, 1, 4, 5], "4 aggregators on 2 nodes of 4", 0.5)])
def test_too_few_or_crowded_ones_are_found(tmp_path, aggregators, said, share):
    report = advised(tmp_path, collective(aggregators), ranks=8, nodes=4, compute_s=0.1)
    one = the(report, "aggregators")
    assert said in one.sentence.replace("\u00a0", " ") and "cb_nodes = 4" in one.change
    whole = len(aggregators) * 32 * 10e-3
    assert one.saving.io.high == pytest.approx(share * whole, rel=0.01)


def test_too_many_with_small_parts_are_found(tmp_path):
    report = advised(tmp_path, collective(list(range(16)), 640, 16 * KIB, 300 * US), ranks=16,
        nodes=2, compute_s=0.01)
    one = the(report, "aggregators")
    assert "16 aggregators on 2 nodes write" in one.sentence.replace("\u00a0", " ")
    assert one.saving.requests == 16 * 640 - 160 and "cb_nodes = 2" in one.change


@pytest.mark.parametrize(("aggregators", "requests", "size"), [
    ([0, 1, 2, 3], 32, MIB),  # one of each node
    (list(range(8)), 32, MIB),  # two of each
    ([0], 15, MIB)])  # too little to matter
def test_what_is_as_it_should_be_is_not(tmp_path, aggregators, requests, size):
    report = advised(tmp_path, collective(aggregators, requests, size), ranks=8, nodes=4,
        compute_s=0.1)
    assert "aggregators" not in names(report)
