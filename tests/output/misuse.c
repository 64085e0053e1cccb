// SPDX-License-Identifier: Apache-2.0
// Programs that use libweir wrongly, one mistake each. The errors that each rank gets are printed
// as model.c prints it.
//     misuse MISTAKE
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/mpi.h>
#include <weir/weir.h>

static int me;
static weir_error err;
static weir_context *context;
static weir_field *field;

#define SAY(call, ...)                                                                     \
  do {                                                                                     \
    if (call(__VA_ARGS__, &err))                                                           \
      printf("rank %d: %s: %s: %s\n", me, #call, weir_status_name(err.code), err.message); \
    fflush(stdout);                                                                        \
  } while (0)

// No collective: one of weir's has not ended on MPI_COMM_WORLD. A launcher may end all ranks with
// the first.
static void end_together(void) {
  int ranks, word = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  printf("rank %d ends\n", me);
  fflush(stdout);
  for (int r = 1; r < ranks && me == 0; r++)
    MPI_Recv(&word, 1, MPI_INT, r, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int r = 1; r < ranks && me == 0; r++) MPI_Send(&word, 1, MPI_INT, r, 9, MPI_COMM_WORLD);
  if (me != 0) {
    MPI_Send(&word, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
    MPI_Recv(&word, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  _exit(0);
}

enum { kColumns = 6, kRows = 8 };

static void define(int rank, int ranks, int64_t factor, int halo) {
  weir_grid *grid;
  weir_decomposition *rows;
  weir_axis *level;
  weir_stream *stream;
  int64_t j0 = kRows * rank / ranks, nj = kRows * (rank + 1) / ranks - j0;
  SAY(weir_grid_create_curvilinear, context, "grid", kColumns * factor, kRows, &grid);
  SAY(weir_decomposition_create_block, grid, "rows", 0, kColumns * factor, j0, nj, &rows);
  if (halo) SAY(weir_decomposition_set_halo, rows, 1, 1, 1, 1);
  SAY(weir_axis_create, context, "level", factor > 1 ? 1000000 : 1, NULL, "1", &level);
  SAY(weir_field_create, rows, "u", WEIR_FLOAT32, 1, &level, &field);
  SAY(weir_stream_create, context, "history", "o.nc", NULL, &stream);
  SAY(weir_stream_set_every, stream, 60.0);
  SAY(weir_stream_add_field, stream, field, WEIR_INSTANT);
  SAY(weir_context_end_definition, context);
}

static void steps(const char *mistake, int rank) {
  float data[kColumns * kRows] = {0};
  for (int s = 0; s < 4; s++) {
    double time_s = 60.0 * s;
    if (!strcmp(mistake, "other_time") && rank == 1 && s == 2)
      time_s -= 60.0 * 0.5;                                      // not due there
    if (!strcmp(mistake, "ahead") && rank == 1) time_s += 60.0;  // due, and another step
    if (!strcmp(mistake, "infinite") && s == 2) time_s = INFINITY;
    if (!strcmp(mistake, "early_end") && rank == 1 && s == 3) return;
    SAY(weir_step, context, time_s);
    SAY(weir_put, field, data);
    SAY(weir_end_step, context);
  }
}

int main(int argc, char **argv) {
  const char *mistake = argc > 1 ? argv[1] : "";
  MPI_Comm model, second_model;
  weir_context *second;
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  if (strcmp(mistake, "absent") || me != 1) SAY(weir_init, MPI_COMM_WORLD, "", &model, &context);
  if (!strcmp(mistake, "alone") && me == 0)
    SAY(weir_init, MPI_COMM_WORLD, "", &second_model, &second);
  if (!strcmp(mistake, "absent") || !strcmp(mistake, "alone")) end_together();
  if (context != NULL) {
    MPI_Comm_rank(model, &rank);
    MPI_Comm_size(model, &ranks);
    if (!strcmp(mistake, "two_contexts"))
      SAY(weir_init, MPI_COMM_WORLD, "", &second_model, &second);
    if (!strcmp(mistake, "second_on_model")) SAY(weir_init, model, "", &second_model, &second);
    if (!strcmp(mistake, "huge"))
      define(rank, ranks, 100000,
             0);  // 4.8e12 elements in all, in few columns: those are looked at one by one
    else define(rank, ranks, 1, !strcmp(mistake, "lend_with_halo"));
    if (strcmp(mistake, "huge") && strcmp(mistake, "lend_with_halo")) steps(mistake, rank);
    if (!strcmp(mistake, "lend_with_halo")) {
      void *place;
      SAY(weir_step, context, 0.0);
      SAY(weir_field_lend, field, &place);
    }
    if (strcmp(mistake, "no_finalize")) SAY(weir_finalize, &context);
  }
  MPI_Finalize();
  printf("rank %d ends\n", me);
  return 0;
}
