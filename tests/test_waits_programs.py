# SPDX-License-Identifier: Apache-2.0
"""Who waits for whose I/O in real MPI programs, on both MPIs. Slow files are made so by layer delay, so that answers are known as shares and counts,
whatever the machine does besides."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.mpi

DELAY_US = 60_000
C = r"""
#include <mpi.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int rank, size;
static void put(const char *name, int records) {
  char text[64] = "record";
  int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0644);
  for (int i = 0; i < records; i++) if (write(fd, text, sizeof text) != sizeof text) abort();
  close(fd);
}
static void put_own(int records) {
  char name[32];
  snprintf(name, sizeof name, "slow.own%d", rank);
  put(name, records);
}
static void compute(double seconds) {
  for (double end = MPI_Wtime() + seconds; MPI_Wtime() < end;) {}
}
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int token = 0, sum;
  const char *what = argv[1];
  MPI_Barrier(MPI_COMM_WORLD);
  if (!strcmp(what, "one")) {
    if (rank == 0) put("slow.restart", 5);
    if (rank == 1) put("quick", 5);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  } else if (!strcmp(what, "all")) {
    put_own(5);
    MPI_Barrier(MPI_COMM_WORLD);
  } else if (!strcmp(what, "hidden")) {
    if (rank == 0) put("slow.restart", 2);
    else compute(1.5);
    MPI_Barrier(MPI_COMM_WORLD);
  } else if (!strcmp(what, "split")) {
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    if (rank == 1) put("slow.odd", 5);
    MPI_Barrier(half);
    MPI_Comm_free(&half);
  } else if (!strcmp(what, "message")) {
    if (rank == 1) put("slow.sent", 5);
    if (rank == 1) MPI_Send(&token, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
    if (rank == 0) MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Finalize();
  return 0;
}
"""


@pytest.fixture
def waits(mpi, weir, tmp_path):
    """``waits("one")``: the program traced on 4 tasks, each request of slow.* delayed; the step's JSON."""
    program = mpi.cc(C, name="waits")
    rules = tmp_path / "rules.toml"
    rules.write_text(f'[[rule]]\nname = "slow.*"\nstack = "delay:op=write:us={DELAY_US} | system"\n')

    def traced(what: str, *options: str) -> dict:
        command = ["trace", "--quiet", "--level", "trace", "--rules", rules, "-o", "run", *options, "--", *mpi.launch(4, program, what)]
        weir(*command, cwd=tmp_path, env=dict(mpi.env), timeout=90).ok()
        return json.loads(weir("report", tmp_path / "run", "--json").ok().stdout)

    return traced


def only(report: dict) -> dict:
    [found] = report["waits"]
    assert found["incomplete"] == 0 and found["tasks"] == 4
    return found


LEAST_S = 5 * DELAY_US / 1e6  # that the slow file takes, however quick the machine


def test_the_task_that_writes_while_the_others_wait_is_found_with_its_file(waits):
    found = only(waits("one"))
    worst = found["files"][0]
    assert worst["file"].endswith("/slow.restart") and worst["ranks"] == [0] and list(worst["ops"])[0] == "write"
    assert worst["paid_s"] >= 0.8 * LEAST_S and worst["exposed_s"] >= 0.8 * LEAST_S
    assert worst["waited_s"] >= 2 * worst["exposed_s"]  # three wait, task 1 a little less
    assert worst["paid_s"] >= 0.9 * found["paid_s"]
    reduce = next(one for one in found["routines"] if one["routine"] == "MPI_Allreduce")
    assert (reduce["communicator"], reduce["calls"], reduce["last"], reduce["last_times"]) == ("world", 1, 0, 1)


def test_all_that_write_at_once_pay_without_waiting(waits):
    found = only(waits("all"))
    assert found["paid_s"] >= 0.8 * LEAST_S
    assert found["exposed_s"] <= 0.5 * found["paid_s"]
    assert found["files"][0]["file"].rpartition(".")[2].startswith("own")


def test_what_others_compute_meanwhile_hides_it(waits):
    report = waits("hidden")
    found = only(report)
    slow = next(one for one in report["files"] if one["file"].endswith("slow.restart"))
    assert slow["seconds"] >= 2 * DELAY_US / 1e6
    assert found["paid_s"] <= 0.5 * slow["seconds"]


def test_only_the_half_that_meets_it_waits(waits):
    found = only(waits("split"))
    worst = found["files"][0]
    assert worst["file"].endswith("/slow.odd") and worst["ranks"] == [1]
    barrier = next(one for one in found["routines"] if one["routine"] == "MPI_Barrier" and one["communicator"] != "world")
    assert barrier["communicator"].startswith("world/") and barrier["last"] == 1
    # One task of the other half may wait for it in MPI_Comm_free; nobody waits more than once for a second of it.
    assert 0.8 * LEAST_S <= worst["exposed_s"] <= worst["io_s"] * 1.001


def test_a_receive_from_anybody_waits_for_who_sent(waits):
    found = only(waits("message"))
    worst = found["files"][0]
    assert worst["file"].endswith("/slow.sent") and worst["ranks"] == [1]
    receive = next(one for one in found["routines"] if one["routine"] == "MPI_Recv")
    assert receive["last"] == 1 and receive["waited_s"] >= 0.8 * LEAST_S


def test_without_mpi_there_are_no_waits(waits):
    assert waits("one", "--no-mpi")["waits"] == []


def test_a_killed_task_leaves_what_came_before_it(mpi, weir, tmp_path):
    """Rank 3 is killed in the middle; what the others waited for before that is told, and the report is made."""
    source = r"""
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
int main(int argc, char **argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 4; i++) {
    if (rank == 0) {
      FILE *f = fopen("slow.restart", "a");
      fputs("x", f);
      fclose(f);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (rank == 3) raise(SIGKILL);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
"""
    program = mpi.cc(source, name="killed")
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nname = "slow.*"\nstack = "delay:op=write:us=50000 | system"\n')
    weir("trace", "--quiet", "--rules", rules, "-o", "run", "--", *mpi.launch(4, program), cwd=tmp_path, env=dict(mpi.env), timeout=90)
    report = json.loads(weir("report", tmp_path / "run", "--json").stdout)
    [found] = report["waits"]
    assert found["collectives"] == 4
    assert found["files"][0]["file"].endswith("/slow.restart") and found["files"][0]["exposed_s"] >= 3 * 0.04  # the tasks do not all begin at once
