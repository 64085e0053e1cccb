// SPDX-License-Identifier: Apache-2.0
// A small model, of which one call of MPI by libweir fails, or that and all later ones of the same
// rank. Files RUN.each.nc and RUN.means.nc. Each rank prints the errors that it got, how many calls
// it has made and which of them was the first after weir_init.
//   faults RUN RANK K LATER      RANK -1: none fails
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <weir/mpi.h>
#include <weir/weir.h>

#include "mpi_faults.h"

enum { kNx = 16, kNy = 12, kSteps = 5 };

static int me, run;
static long of_init;  // calls of weir_init
static int said(int code, const weir_error *err) {
  if (code) printf("run %d rank %d: %s: %s\n", run, me, weir_status_name(code), err->message);
  return code;
}
#define SAY(call, ...) said(call(__VA_ARGS__, &err), &err)

static void compute(weir_context *context, MPI_Comm model) {
  weir_error err;
  int rank, ranks;
  char path[64], means_path[64];
  MPI_Comm_rank(model, &rank);
  MPI_Comm_size(model, &ranks);
  const long j0 = kNy * rank / ranks, nj = kNy * (rank + 1) / ranks - j0;
  double x[kNx + kNy], data[kNx * kNy];
  for (int i = 0; i < kNx + kNy; i++) x[i] = i;
  weir_grid *grid;
  weir_decomposition *rows;
  weir_stream *each, *means;
  weir_field *a, *m;
  snprintf(path, sizeof path, "%d.each.nc", run);
  snprintf(means_path, sizeof means_path, "%d.means.nc", run);
  const int bad = SAY(weir_grid_create_plane, context, "plane", kNx, x, kNy, x + kNx, &grid) ||
                  SAY(weir_decomposition_create_block, grid, "rows", 0, kNx, j0, nj, &rows) ||
                  SAY(weir_field_create, rows, "a", WEIR_FLOAT64, 0, NULL, &a) ||
                  SAY(weir_field_create, rows, "m", WEIR_FLOAT64, 0, NULL, &m) ||
                  SAY(weir_stream_create, context, "each", path, "cdf5", &each) ||
                  SAY(weir_stream_create, context, "means", means_path, "cdf5", &means) ||
                  SAY(weir_stream_set_every_steps, means, 2) ||
                  SAY(weir_stream_add_field, each, a, WEIR_INSTANT) ||
                  SAY(weir_stream_add_field, means, m, WEIR_MEAN) ||
                  SAY(weir_context_end_definition, context);
  for (int step = 0; step < kSteps && !bad; step++) {
    SAY(weir_step, context, 60.0 * step);
    for (long k = 0; k < nj * kNx; k++) data[k] = (double)(j0 * kNx + k + 1000 * step);
    SAY(weir_put, a, data);
    SAY(weir_put, m, data);
    SAY(weir_end_step, context);
  }
  SAY(weir_finalize, &context);
}

static void run_once(int fails, long k, int later) {
  weir_error err;
  weir_context *context = NULL;
  MPI_Comm model = MPI_COMM_NULL;
  setenv("WEIR_OUTPUT_TIME_LIMIT_S", fails ? "0.5" : "60", 1);
  mpi_fault_arm(k, later);
  if (SAY(weir_init, MPI_COMM_WORLD, "", &model, &context) == 0 && context != NULL) {
    printf("run %d rank %d: computes\n", run, me);
    of_init = mpi_fault_calls();
    compute(context, model);
  }
  if (*mpi_fault_failed())
    printf("run %d rank %d: call %ld%s failed: %s\n", run, me, k,
           later ? " and all later ones" : "", mpi_fault_failed());
}

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  run = atoi(argv[1]);
  const int failing = atoi(argv[2]);
  run_once(failing >= 0, failing == me ? atol(argv[3]) : 0, atoi(argv[4]));
  const long calls = mpi_fault_calls(), syncs = mpi_fault_syncs();
  int messages;
  const int freed = mpi_fault_freed(&messages);
  printf(
      "rank %d: %ld calls, %ld of weir_init, %ld of MPI_Win_sync, number %ld waits without a time "
      "limit; %d messages on %d communicators that were freed\n",
      me, calls, of_init, syncs, mpi_fault_blocking(), messages, freed);
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  if (failing >= 0)
    _exit(0);  // what calls that failed have left under way is too much for MPI_Finalize of some
  MPI_Finalize();
  return 0;
}
