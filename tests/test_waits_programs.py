# SPDX-License-Identifier: Apache-2.0
"""Who waits for whose I/O in real MPI programs, on both MPIs. Slow files are made so by layer
delay, so that answers are known as shares and counts, whatever the machine does besides."""

from __future__ import annotations

import json

import pytest
from wall_sums import split_exactly

from weir.report import build
from weir.report.wall.table import rows_of_step

pytestmark = [pytest.mark.mpi, pytest.mark.any_mpi]

DELAY_US = 60_000
C = r"""
#include <mpi.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int rank;
static void put(const char *name, int records) {
  char text[64] = "record";
  int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0644);
  for (int i = 0; i < records; i++) if (write(fd, text, sizeof text) != sizeof text) abort();
  close(fd);
}
static void compute(double seconds) {
  for (double end = MPI_Wtime() + seconds; MPI_Wtime() < end;) {}
}
static void begin(const char *phase) {
  MPI_Barrier(MPI_COMM_WORLD);
  weir_phase_begin(phase);
}
int main(int argc, char **argv) {
  int token = 0, sum;
  char own[32];
  MPI_Comm half;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  begin("one");
  if (rank == 0) put("slow.restart", 5);
  if (rank == 1) put("quick", 5);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  weir_phase_end("one");
  begin("all");
  snprintf(own, sizeof own, "slow.own%d", rank);
  put(own, 5);
  MPI_Barrier(MPI_COMM_WORLD);
  weir_phase_end("all");
  begin("hidden");
  if (rank == 0) put("slow.hidden", 2);
  else compute(1);
  MPI_Barrier(MPI_COMM_WORLD);
  weir_phase_end("hidden");
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  begin("split");
  if (rank == 1) put("slow.odd", 5);
  MPI_Bcast(&token, 1, MPI_INT, 0, half);
  MPI_Barrier(half);
  weir_phase_end("split");
  begin("message");
  if (rank == 1) put("slow.sent", 5);
  if (rank == 1) MPI_Send(&token, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
  if (rank == 0) MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  weir_phase_end("message");
  begin("collective");
  MPI_File file;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "cb_nodes", "1");
  MPI_Info_set(info, "romio_cb_write", "enable");
  MPI_File_open(MPI_COMM_WORLD, "slow.collective", MPI_MODE_CREATE | MPI_MODE_WRONLY, info, &file);
  for (int i = 0; i < 5; i++) MPI_File_write_at_all(file, 64 * (4 * i + rank), own, sizeof own, MPI_CHAR, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  weir_phase_end("collective");
  MPI_Comm_free(&half);
  MPI_Finalize();
  return 0;
}
"""


@pytest.fixture
def traced(mpi, weir, tmp_path, root):
    """``traced()``: the program traced on 4 ranks, each write to slow.* delayed; the report's JSON.
    """
    program = mpi.cc((root / "include" / "weir" / "phase.h").read_text() + C, name="waits")
    rules = tmp_path / "rules.toml"
    rules.write_text(
        f'[[rule]]\nname = "slow.*"\nstack = "delay:op=write:us={DELAY_US} | system"\n')

    def run(*options: str) -> dict:
        command = ["trace", "--quiet", "--level", "trace", "--rules", rules, "-o", "run", *options,
            "--", *mpi.launch(4, program)]
        weir(*command, cwd=tmp_path, env=dict(mpi.env), timeout=90).ok()
        return json.loads(weir("report", tmp_path / "run", "--json").ok().stdout)

    return run


LEAST_S = 5 * DELAY_US / 1e6  # that a slow file takes, however quick the machine


def test_each_part_of_the_program_waits_for_what_it_is_made_to_wait_for(traced):
    report = traced()
    [found] = report["waits"]
    assert found["incomplete"] == 0 and found["ranks"] == 4
    files = {one["file"].rpartition("/")[2]: one for one in found["files"]}
    phases = {one["phase"]: one for one in report["phases"]}
    routines = {(one["routine"], one["communicator"]): one for one in found["routines"]}
    assert set(phases) == {"one", "all", "hidden", "split", "message", "collective"}

    # One rank writes, three wait.
    restart = files["slow.restart"]
    assert restart["ranks"] == [0] and list(restart["ops"])[0] == "write"
    assert 0.8 * LEAST_S <= restart["critical_s"] <= restart["path_s"] <= restart["io_s"] * 1.001
    assert restart["waited_s"] >= 2 * restart["critical_s"]
    assert phases["one"]["critical_s"] >= 0.9 * restart["critical_s"]
    reduce = routines["MPI_Allreduce", "world"]
    assert (reduce["calls"], reduce["last"], reduce["last_times"]) == (1, 0, 1)

    # All write at once: hardly anybody waits, but the run does.
    assert phases["all"]["critical_s"] >= 0.8 * LEAST_S
    assert phases["all"]["waited_s"] <= 0.5 * phases["all"]["io_s"]

    # The others compute for longer than rank 0 writes.
    hidden = next(one for one in report["files"] if one["file"].endswith("slow.hidden"))
    assert hidden["seconds"] >= 2 * DELAY_US / 1e6 and phases["hidden"][
        "io_s"] >= 2 * DELAY_US / 1e6
    assert phases["hidden"]["critical_s"] <= 0.5 * hidden["seconds"]

    # Only the half of the ranks that meets it waits for rank 1; a broadcast's root waits for
    # nobody.
    odd = files["slow.odd"]
    assert odd["ranks"] == [1] and 0.8 * LEAST_S <= odd["critical_s"] <= odd["io_s"] * 1.001
    [bcast] = [one for (routine, comm), one in routines.items() if routine == "MPI_Bcast"
        and one["last"] == 1]
    assert bcast["communicator"].startswith("world/")

    # A receive from anybody waits for who sent.
    sent, receive = files["slow.sent"], routines["MPI_Recv", "world"]
    assert sent["ranks"] == [1] and sent["critical_s"] >= 0.8 * LEAST_S
    assert receive["last"] == 1 and receive["waited_s"] >= 0.8 * LEAST_S

    # In MPI-IO one rank writes for all, which wait in the call.
    together = files["slow.collective"]
    [calls] = [one for one in found["routines"] if one["routine"] == "MPI_File_write_at_all"]
    assert calls["calls"] == 5 and calls["communicator"].endswith(
        "slow.collective") and calls["last_times"] >= 4
    assert together["ranks"][0] == calls["last"] and together["critical_s"] >= 0.8 * LEAST_S
    assert together["waited_s"] >= 2 * together["critical_s"]


def test_the_wall_time_of_each_rank_is_split_to_the_nanosecond(traced, tmp_path):
    traced()
    [step] = build(tmp_path / "run").steps
    split_exactly(step)
    rows = {row["phase"]: row for row in rows_of_step(step)}
    least_ns = 1e9 * LEAST_S
    # One rank writes, three wait; all write; two waits for one message or broadcast; MPI-IO.
    assert rows["one"]["io_ns"] >= 0.8 * least_ns and rows["one"]["io_wait_ns"] >= 2 * least_ns
    assert rows["all"]["io_ns"] >= 4 * 0.8 * least_ns
    assert rows["hidden"]["computing_ns"] >= 2e9  # of three ranks that compute for 1 s
    assert rows["message"]["io_wait_ns"] >= 0.8 * least_ns
    assert rows["collective"]["io_wait_ns"] >= 2 * least_ns


def test_without_mpi_there_are_no_waits(traced):
    report = traced("--no-mpi")
    assert report["waits"] == [] and len(report["phases"]) == 6
    assert report["wall_time"] == []


def test_a_killed_rank_leaves_what_came_before_it(mpi, weir, tmp_path):
    """Rank 3 is killed in the middle; what the others waited for before that is reported, and the
    report is made."""
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
  // all have left the last barrier
  if (rank != 3) MPI_Send(&rank, 1, MPI_INT, 3, 0, MPI_COMM_WORLD);
  for (int i = 0; rank == 3 && i < 3; i++)
    MPI_Recv(&rank, 1, MPI_INT, i, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), rank = 3;
  if (rank == 3) raise(SIGKILL);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
"""
    program = mpi.cc(source, name="killed")
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nname = "slow.*"\nstack = "delay:op=write:us=50000 | system"\n')
    weir("trace", "--quiet", "--rules", rules, "-o", "run", "--", *mpi.launch(4, program),
        cwd=tmp_path, env=dict(mpi.env), timeout=90)
    report = json.loads(weir("report", tmp_path / "run", "--json").stdout)
    [found] = report["waits"]
    assert found["collectives"] == 4
    # the ranks do not all begin at once
    assert found["files"][0]["file"].endswith(
        "/slow.restart") and found["files"][0]["critical_s"] >= 2 * 0.04
