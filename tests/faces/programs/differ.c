/* SPDX-License-Identifier: Apache-2.0
 * Ranks that do not define the same, or the wrong thing. argv[1] says what goes wrong; each rank
 * prints the error that it got. */
#include <stdio.h>
#include <string.h>
#include <weir/mpi.h>
#include <weir/weir.h>

static weir_error err;
static int rank, size;

static int reported(int code) {
  if (code != WEIR_OK) printf("rank %d: %s: %s\n", rank, weir_status_name(code), err.message);
  return code;
}

static int define(weir_context *context, const char *mistake) {
  const double x[4] = {0, 1, 2, 3}, y[6] = {0, 1, 2, 3, 4, 5};
  weir_grid *grid = NULL;
  weir_decomposition *rows = NULL;
  weir_field *t = NULL;
  weir_stream *history = NULL;
  const int other = rank == size - 1;
  if (reported(weir_grid_create_plane(context, "plane", 4, x, 6, y, &grid, &err))) return 1;
  int64_t first = 6 * rank / size, count = 6 * (rank + 1) / size - first;
  if (strcmp(mistake, "outside") == 0 && other) count++;
  if (strcmp(mistake, "doubled") == 0 && other) first--, count++;
  if (strcmp(mistake, "missing") == 0 && other) count--;
  if (reported(weir_decomposition_create_block(grid, "rows", 0, 4, first, count, &rows, &err)))
    return 1;
  if (reported(weir_field_create(rows, "t", WEIR_FLOAT32, 0, NULL, &t, &err))) return 1;
  if (reported(weir_field_set_text(t, "units",
                                   strcmp(mistake, "units") == 0 && other ? "degC" : "K", &err)))
    return 1;
  if (strcmp(mistake, "halo") == 0 &&
      reported(weir_decomposition_set_halo(rows, 1, other ? -1 : 1, 0, 0, &err)))
    return 1;
  if (reported(weir_stream_create(context, "history", "differ.nc", NULL, &history, &err))) return 1;
  if (reported(weir_stream_add_field(history, t, WEIR_INSTANT, &err))) return 1;
  return reported(weir_context_end_definition(context, &err));
}

int main(int argc, char **argv) {
  MPI_Comm model;
  weir_context *context = NULL;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (reported(weir_init(MPI_COMM_WORLD, argc > 2 ? argv[2] : NULL, &model, &context, &err)) ==
      WEIR_OK) {
    if (define(context, argv[1]) == WEIR_OK) printf("rank %d: fine\n", rank);
    reported(weir_finalize(&context, &err));
  }
  MPI_Finalize();
  return 0;
}
