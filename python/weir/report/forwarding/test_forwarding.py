# SPDX-License-Identifier: Apache-2.0
"""Table forwarding: who writes for others, by messages, gathers and MPI-IO."""

from __future__ import annotations

import json

import pytest
from wait_trace import WaitTrace

from weir.report import build
from weir.report.forwarding.compute import forwarding_of

pytestmark = pytest.mark.any_mpi

MB = 10**6


def rows_of(program: WaitTrace, tmp_path) -> dict[str, dict]:
    """By node. `io` of WaitTrace writes as many bytes as it lasts ns."""
    program.write(tmp_path / "run" / "main")
    return {row["node"]: row for row in forwarding_of(build(tmp_path / "run"))}


def figures(row: dict, *names: str) -> tuple:
    numbers = {"which": tuple(one.rank for one in row["which"])}
    return tuple((row | numbers)[name] for name in names)


def test_a_gather_to_one_rank_forwards_what_the_others_sent(tmp_path):
    program = WaitTrace(4, nodes=2)  # ranks 0 and 2, 1 and 3
    program.gather(0, size=5 * MB)
    program.io(0, 20 * MB)
    program.barrier()
    rows = rows_of(program, tmp_path)
    assert figures(rows["n0"], "ranks", "io_ranks", "which") == (2, 1, (0,))
    assert figures(rows["n0"], "written_bytes", "received_bytes", "remote_bytes",
        "forwarded_bytes") == (20 * MB, 15 * MB, 10 * MB, 15 * MB)
    assert rows["n0"]["forwarded_share"] == 0.75
    assert figures(rows["n1"], "ranks", "io_ranks", "written_bytes",
        "forwarded_share") == (2, 0, 0, None)


def test_messages_to_a_server_are_forwarded_once(tmp_path):
    """The server writes less than it received: not more than it wrote was forwarded."""
    program = WaitTrace(3)
    for rank in (0, 1):
        program.message(rank, 2, size=8 * MB)
    program.io(2, 10 * MB)
    program.message(2, 0, size=3 * MB)
    row = rows_of(program, tmp_path)["n0"]
    assert figures(row, "which", "received_bytes", "forwarded_bytes", "sent_bytes",
        "forwarded_share") == ((2,), 16 * MB, 10 * MB, 3 * MB, 1.0)


def test_what_ranks_exchange_is_not_forwarded(tmp_path):
    """Each rank writes; rank 0 also what rank 1 sent it beyond the exchange."""
    program = WaitTrace(2)
    for _ in range(4):
        program.message(0, 1, size=5 * MB)
        program.message(1, 0, size=5 * MB)
    program.message(1, 0, size=2 * MB)
    program.io(0, 10 * MB)
    program.io(1, 8 * MB)
    row = rows_of(program, tmp_path)["n0"]
    assert figures(row, "io_ranks", "received_bytes", "net_bytes", "forwarded_bytes") == (2,
        42 * MB, 2 * MB, 2 * MB)


def test_what_a_wait_completed_is_received(tmp_path):
    program = WaitTrace(2)
    program.waitall(1, [0], 100)
    program.io(1, 10)
    program.barrier()
    assert rows_of(program, tmp_path) == {}  # of no bytes


def test_nothing_is_forwarded_where_each_rank_writes_its_own(tmp_path):
    program = WaitTrace(4)
    for rank in range(4):
        program.io(rank, 10 * MB)
    program.barrier()
    assert rows_of(program, tmp_path) == {}


AGGREGATED = r"""
#include <mpi.h>
#include <stdlib.h>
enum { BYTES = 1 << 20, PIECE = 4096 };
int main(int argc, char **argv) {
  MPI_File file;
  MPI_Datatype strided;
  MPI_Info info;
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Info_create(&info);
  MPI_Info_set(info, "cb_nodes", "1");
  MPI_Info_set(info, "romio_cb_write", "enable");
  MPI_File_open(MPI_COMM_WORLD, "data", MPI_MODE_CREATE | MPI_MODE_WRONLY, info, &file);
  MPI_Type_vector(BYTES / PIECE, PIECE, PIECE * ranks, MPI_BYTE, &strided);
  MPI_Type_commit(&strided);
  MPI_File_set_view(file, (MPI_Offset)rank * PIECE, MPI_BYTE, strided, "native", MPI_INFO_NULL);
  MPI_File_write_all(file, calloc(1, BYTES), BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  return MPI_Finalize();
}
"""


def test_an_aggregator_of_mpi_io_writes_for_all(mpi, weir, tmp_path):
    run = tmp_path / "run"
    weir("trace", "-o", run, "--", *mpi.launch(4, mpi.cc(AGGREGATED)), cwd=tmp_path,
        env={**mpi.env, "OMPI_MCA_io": "romio321"}).ok()
    [row] = json.loads(weir("report", run, "--json").ok().stdout)["forwarding"]
    size = 1 << 20
    assert (row["ranks"], row["io_ranks"], row["written_bytes"]) == (4, 1, 4 * size)
    assert row["mpi_io_bytes"] == row["forwarded_bytes"] == 3 * size
    text = weir("report", run, "--tables", "forwarding").ok().stdout
    assert "1 of 4 ranks do I/O" in text


GATHERED = r"""
#include <fcntl.h>
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>
enum { BYTES = 1 << 20 };
int main(int argc, char **argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  char *mine = calloc(1, BYTES), *all = calloc(ranks, BYTES);
  MPI_Gather(mine, BYTES, MPI_BYTE, all, BYTES, MPI_BYTE, 1, MPI_COMM_WORLD);
  if (rank == 1) {
    int file = open("gathered", O_CREAT | O_WRONLY, 0644);
    if (write(file, all, ranks * BYTES) != ranks * BYTES) return 1;
    close(file);
  }
  if (rank == 2) MPI_Send(mine, BYTES, MPI_BYTE, 3, 0, MPI_COMM_WORLD);
  if (rank == 3) {
    MPI_Request request;
    MPI_Irecv(mine, BYTES, MPI_BYTE, 2, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    int file = open("sent", O_CREAT | O_WRONLY, 0644);
    if (write(file, mine, BYTES) != BYTES) return 1;
    close(file);
  }
  return MPI_Finalize();
}
"""


@pytest.mark.timeout(120)
def test_ranks_that_write_what_others_sent(mpi, weir, tmp_path):
    run = tmp_path / "run"
    weir("trace", "-o", run, "--", *mpi.launch(4, mpi.cc(GATHERED)), cwd=tmp_path,
        env=mpi.env).ok()
    [row] = json.loads(weir("report", run, "--json").ok().stdout)["forwarding"]
    size = 1 << 20
    assert row["which"] == [1, 3] and row["written_bytes"] == 5 * size
    assert row["received_bytes"] == row["forwarded_bytes"] == 4 * size
