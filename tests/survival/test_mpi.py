# SPDX-License-Identifier: Apache-2.0
"""Ranks of an MPI program that come to a bad end: what each of them did until then is in the trace.
"""

import signal

import pytest
from weir_guest import Outcome

RANK = r"""
#include <mpi.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char name[16];
  snprintf(name, sizeof name, "rank%d", rank);
  int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  for (int i = 0; i < 500; ++i) {
    if (write(fd, "x", 1) != 1) return 9;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) {
    if (strcmp(argv[1], "abort") == 0) MPI_Abort(MPI_COMM_WORLD, 3);
    if (strcmp(argv[1], "exit") == 0) exit(3);
    raise(atoi(argv[1]));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (;;) pause();
}
"""


@pytest.mark.parametrize("how", ["abort", "exit", int(signal.SIGKILL), int(signal.SIGSEGV)])
def test_a_rank_that_ends_badly(mpi, preload_env, execute, tmp_path, how):
    program = mpi.cc(RANK)
    (tmp_path / "cwd").mkdir()
    env = preload_env()
    done = execute(mpi.launch(3, program, how), env={**mpi.env, **env}, cwd=tmp_path / "cwd",
        timeout=90)
    assert done.returncode != 0
    trace = Outcome(done, tmp_path / "run" / "main").trace
    ranks = {p.rank: p for p in trace.processes.values() if p.rank >= 0}
    assert set(ranks) == {0, 1, 2} and {p.ranks for p in ranks.values()} == {3}
    for rank, process in ranks.items():
        mine = [r for r in trace.of("write", file=f"rank{rank}") if r.process == process.number]
        assert len(mine) == 500
    assert all(p.lost_events == 0 for p in trace.processes.values())
