# SPDX-License-Identifier: Apache-2.0
"""Finding independent-mpi-io: what it is found in, what it is worth, which rule cures it;
and what has just less than its limits."""

from __future__ import annotations

from advised import KIB, MS, US, advised, the
from wait_trace import WaitTrace


def test_independent_calls_of_mpi_io_are_found(tmp_path):
    def program(trace: WaitTrace) -> None:
        for rank in range(trace.ranks):
            trace.mpi_io(rank, "MPI_File_open", "/scratch/an/all.dat", MS)
        for number in range(600):
            for rank in range(trace.ranks):
                at = (number * trace.ranks + rank) * KIB
                trace.io(rank, 400 * US, "/scratch/an/all.dat", "pwrite", KIB, at)
                trace.now[rank] -= 400 * US
                trace.io(rank, 500 * US, "/scratch/an/all.dat", "MPI_File_write_at", KIB, at)

    one = the(advised(tmp_path, program), "independent-mpi-io")
    assert "by 1,200 independent calls" in one.sentence
    assert "MPI_File_write_all" in one.change
