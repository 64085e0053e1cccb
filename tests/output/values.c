// SPDX-License-Identifier: Apache-2.0
// Fields some of whose values their types in files cannot hold, and calls after weir_finalize. The
// errors that each rank gets are printed as model.c prints it.
//     values PATH FORMAT [ROTATION]
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <weir/mpi.h>
#include <weir/weir.h>

enum { kColumns = 8, kRows = 12, kLevels = 2, kSteps = 4 };

static int me;
static weir_error err;
static weir_context *context;
static weir_decomposition *rows;
static weir_axis *level;
static weir_stream *stream;

#define SAY(call, ...)                                                                     \
  do {                                                                                     \
    if (call(__VA_ARGS__, &err))                                                           \
      printf("rank %d: %s: %s: %s\n", me, #call, weir_status_name(err.code), err.message); \
    fflush(stdout);                                                                        \
  } while (0)

static weir_field *field(const char *name, weir_type type, weir_type in_files) {
  weir_field *made = NULL;
  SAY(weir_field_create, rows, name, type, 1, &level, &made);
  SAY(weir_field_set_text, made, "units", "1");
  SAY(weir_field_set_file_type, made, in_files);
  SAY(weir_stream_add_field, stream, made, WEIR_INSTANT);
  return made;
}

int main(int argc, char **argv) {
  MPI_Comm model;
  weir_grid *grid;
  int rank, ranks;
  double *data;
  int64_t *whole, *sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  SAY(weir_init, MPI_COMM_WORLD, "", &model, &context);
  if (context == NULL) {
    MPI_Finalize();
    return 0;
  }
  MPI_Comm_rank(model, &rank);
  MPI_Comm_size(model, &ranks);
  int64_t j0 = kRows * rank / ranks, nj = kRows * (rank + 1) / ranks - j0, points = kColumns * nj;
  SAY(weir_grid_create_curvilinear, context, "grid", kColumns, kRows, &grid);
  SAY(weir_decomposition_create_block, grid, "rows", 0, kColumns, j0, nj, &rows);
  SAY(weir_axis_create, context, "level", kLevels, NULL, "1", &level);
  SAY(weir_stream_create, context, "history", argv[1], argv[2], &stream);
  SAY(weir_stream_set_every_steps, stream, 1);
  SAY(weir_stream_set_rotation, stream, argc > 3 ? atol(argv[3]) : 0);
  weir_field *plain = field("plain", WEIR_FLOAT64, WEIR_INT16),
             *marked = field("marked", WEIR_FLOAT64, WEIR_INT16);
  weir_field *single = field("single", WEIR_FLOAT64, WEIR_FLOAT32),
             *big = field("big", WEIR_INT64, WEIR_INT64), *added = NULL;
  SAY(weir_field_set_number, marked, "missing_value", -999.0);
  SAY(weir_field_set_missing_int64, big, INT64_MAX - 1);
  SAY(weir_field_create, rows, "added", WEIR_INT64, 1, &level, &added);
  SAY(weir_field_set_text, added, "units", "1");
  SAY(weir_field_set_file_type, added, WEIR_INT8);
  SAY(weir_stream_add_field, stream, added, WEIR_ACCUMULATE);
  data = malloc(sizeof(double) * kLevels * (size_t)points);
  whole = malloc(sizeof(int64_t) * kLevels * (size_t)points);
  sum = malloc(sizeof(int64_t) * kLevels * (size_t)points);
  SAY(weir_step, context, -60.0);  // the first step of all has no sum
  SAY(weir_end_step, context);
  for (int s = 0; s < kSteps; s++) {
    for (int64_t i = 0; i < kLevels * points; i++) {
      int64_t g = j0 * kColumns + i % points, l = i / points;
      data[i] = (double)(g + 100 * l + s);
      if (s >= 1 && l == 1 && g % 5 == 3) data[i] = NAN;
      if (s >= 2 && l == 0 && g >= 90) data[i] = 1e39;
      whole[i] = g % 7 == 0 ? INT64_MAX - 1 : INT64_MAX - 2 - g;
      sum[i] = l == 1 && g == 50 ? 130 : 1;
    }
    SAY(weir_step, context, 60.0 * s);
    SAY(weir_put, plain, data);
    SAY(weir_put, marked, data);
    SAY(weir_put, single, data);
    SAY(weir_put, big, whole);
    SAY(weir_put, added, sum);
    SAY(weir_end_step, context);
  }
  weir_costs costs;
  weir_context *ended = context;
  SAY(weir_finalize_costs, &context, &costs);
  printf("rank %d: %s\n", me,
         context == NULL && costs.frames == kSteps && costs.final_s > 0 ? "costs in all"
                                                                        : "costs are WRONG");
  SAY(weir_finalize, &context);
  SAY(weir_put, plain, data);
  SAY(weir_step, ended, 1e6);
  SAY(weir_finalize, &ended);
  MPI_Finalize();
  return 0;
}
