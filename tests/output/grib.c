/* SPDX-License-Identifier: Apache-2.0
 * A model whose fields GRIB can say: grib CONFIG KIND STEPS PATH. It writes steps through stream
 * "history" to PATH, reads the last back, and prints the greatest difference of each field.
 * KIND: lonlat, gaussian, octahedral (O4), cells. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weir/mpi.h"
#include "weir/weir.h"

static weir_error err;

#define TRY(call)                                               \
  do {                                                          \
    if ((call) != WEIR_OK) {                                    \
      printf("error %d %s\n", err.code, err.message);           \
      fflush(stdout);                                           \
      MPI_Abort(MPI_COMM_WORLD, 1);                             \
    }                                                           \
  } while (0)

enum { kLevels = 3 };
static const double levels[kLevels] = {850, 500, 250};

static double value_at(int field, long step, long level, long point) {
  return 250 + 20 * sin(0.1 * point + field) + level + 0.5 * step;
}

static int missing_at(int field, long point) { return field == 1 && point % 5 == 2; }

static weir_grid *make_grid(weir_context *context, const char *kind, long *nx, long *ny) {
  weir_grid *grid = NULL;
  double lon[64], lat[32];
  *nx = 24, *ny = 12;
  for (long i = 0; i < *nx; i++) lon[i] = 15.0 * i;
  for (long j = 0; j < *ny; j++) lat[j] = 82.5 - 15.0 * j;
  if (strcmp(kind, "lonlat") == 0) {
    TRY(weir_grid_create_lonlat(context, "globe", *nx, lon, *ny, lat, &grid, &err));
  } else if (strcmp(kind, "gaussian") == 0) {
    TRY(weir_grid_create_gaussian(context, "globe", *nx, *ny, &grid, &err));
  } else {
    *nx = 2 * (20 + 24 + 28 + 32), *ny = 1;
    TRY(weir_grid_create_unstructured(context, "globe", *nx, &grid, &err));
  }
  return grid;
}

static const char *const names[3] = {"ta", "skt", "tprate"};

static void describe(weir_field *field, int f) {
  TRY(weir_field_set_text(field, "units", "K", &err));
  if (f == 0) TRY(weir_field_set_text(field, "standard_name", "air_temperature", &err));
  if (f == 1) TRY(weir_field_set_number(field, "missing_value", -1e20, &err));
  if (f == 2) TRY(weir_field_set_number(field, "GRIB_paramId", 3059, &err));
}

static void read_back(MPI_Comm comm, const char *kind, const char *path, long steps, float *floats,
                      const int64_t *mine, long n) {
  weir_context *context;
  weir_grid *grid;
  weir_decomposition *points;
  weir_axis *axis;
  weir_field *field;
  MPI_Comm own;
  long nx, ny, begin = n > 0 ? (long)mine[0] : 0;
  int rank;
  TRY(weir_init(comm, "serial.toml", &own, &context, &err));
  MPI_Comm_rank(own, &rank);
  grid = make_grid(context, kind, &nx, &ny);
  TRY(weir_decomposition_create_indices(grid, "points", n, mine, &points, &err));
  TRY(weir_axis_create(context, "plev", kLevels, levels, "hPa", &axis, &err));
  for (int f = 0; f < 2; f++) {
    TRY(weir_field_create(points, names[f], WEIR_FLOAT32, f == 0, &axis, &field, &err));
    describe(field, f);
    if (strcmp(kind, "octahedral") == 0)
      TRY(weir_field_set_text(field, "GRIB_gridName", "O4", &err));
    TRY(weir_get(field, path, -1, floats, &err));
    double worst = 0, most = 0;
    for (long i = 0; i < n * (f == 0 ? kLevels : 1); i++) {
      double v = value_at(f, steps - 1, i / n, begin + i % n);
      if (missing_at(f, begin + i % n)) v = -1e20f;
      if (fabs(floats[i] - v) > worst) worst = fabs(floats[i] - v);
    }
    MPI_Allreduce(&worst, &most, 1, MPI_DOUBLE, MPI_MAX, own);
    if (rank == 0) printf("read back %s: %g\n", names[f], most);
  }
  TRY(weir_finalize(&context, &err));
}

static void write_steps(weir_context *context, weir_field **fields, long steps, long begin, long n,
                        double *data) {
  float *floats = (float *)data;
  for (long step = 0; step < steps; step++) {
    TRY(weir_step(context, 3600.0 * step, &err));
    for (int f = 0; f < 3; f++) {
      for (long i = 0; i < n * (f == 0 ? kLevels : 1); i++) {
        double v = value_at(f, step, i / n, begin + i % n);
        if (missing_at(f, begin + i % n)) v = -1e20;
        if (f == 2) data[i] = v;
        else floats[i] = (float)v;
      }
      TRY(weir_put(fields[f], data, &err));
    }
    TRY(weir_end_step(context, &err));
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  if (argc < 5) return 2;
  const char *kind = argv[2], *path = argv[4];
  const long steps = atol(argv[3]);
  MPI_Comm comm;
  weir_context *context = NULL;
  TRY(weir_init(MPI_COMM_WORLD, argv[1], &comm, &context, &err));
  if (context == NULL) return MPI_Finalize();
  MPI_Comm again;  /* the context's own goes with it */
  MPI_Comm_dup(comm, &again);
  int rank, ranks;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  long nx, ny;
  weir_grid *grid = make_grid(context, kind, &nx, &ny);
  const long total = nx * ny, begin = total * rank / ranks, n = total * (rank + 1) / ranks - begin;
  int64_t *mine = malloc(sizeof *mine * (size_t)n);
  for (long i = 0; i < n; i++) mine[i] = begin + i;
  weir_decomposition *points;
  TRY(weir_decomposition_create_indices(grid, "points", n, mine, &points, &err));
  if (strcmp(kind, "cells") == 0) {
    double *lon = malloc(sizeof *lon * (size_t)n), *lat = malloc(sizeof *lat * (size_t)n);
    for (long i = 0; i < n; i++) lon[i] = (begin + i) * 0.5, lat[i] = (begin + i) * 0.25;
    TRY(weir_grid_set_lonlat(grid, points, lon, lat, &err));
    free(lon);
    free(lat);
  }
  weir_axis *axis;
  TRY(weir_axis_create(context, "plev", kLevels, levels, "hPa", &axis, &err));
  TRY(weir_axis_set_text(axis, "standard_name", "air_pressure", &err));
  weir_field *fields[3];
  weir_stream *stream;
  TRY(weir_stream_create(context, "history", path, "grib2", &stream, &err));
  for (int f = 0; f < 3; f++) {
    TRY(weir_field_create(points, names[f], f == 2 ? WEIR_FLOAT64 : WEIR_FLOAT32, f == 0, &axis,
                          &fields[f], &err));
    describe(fields[f], f);
    TRY(weir_stream_add_field(stream, fields[f], f == 2 ? WEIR_MEAN : WEIR_INSTANT, &err));
  }
  double *data = malloc(sizeof *data * kLevels * (size_t)n);
  write_steps(context, fields, steps, begin, n, data);
  TRY(weir_finalize(&context, &err));
  read_back(again, kind, path, steps, (float *)data, mine, n);
  free(data);
  free(mine);
  return MPI_Finalize();
}
