/* SPDX-License-Identifier: Apache-2.0
 * A model whose fields GRIB can say: grib CONFIG GRID+LEVELS STEPS PATH [OTHER]. It writes steps
 * through stream "history" to PATH, reads the last back, and prints the greatest difference of each
 * field. With OTHER nothing is written, and that file is read.
 * GRID: lonlat, gaussian, octahedral (O4), named (N32), cells, harmonics (T15).
 * LEVELS: pressure, hybrid, height, soil, members. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weir/mpi.h"
#include "weir/weir.h"

static weir_error err;

/* Into a file: MPICH's launcher may lose what is printed just before MPI_Abort. */
static void end_with_error(void) {
  FILE *file = fopen("error.txt", "a");
  fprintf(file, "error %d %s\n", err.code, err.message);
  fclose(file);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

#define TRY(call)                             \
  do {                                        \
    if ((call) != WEIR_OK) end_with_error();  \
  } while (0)

enum { kLevels = 3 };
static const struct {
  const char *kind, *name, *units;
  double values[kLevels];
  const char *attributes[4];
} axes[] = {
    {"pressure", "plev", "hPa", {850, 500, 250}, {"standard_name", "air_pressure"}},
    {"hybrid", "lev", "1", {1, 2, 3},
     {"standard_name", "atmosphere_hybrid_sigma_pressure_coordinate", "GRIB_pv",
      "0 2000 1000.5 0 0 0.25 0.75 1"}},
    {"height", "z", "m", {2, 10, 100}, {"standard_name", "height"}},
    {"soil", "soil", "m", {0.035, 0.175, 0.64}, {"standard_name", "depth"}},
    {"members", "member", "1", {0, 1, 2}, {"GRIB_key", "perturbationNumber"}},
};
static const double soil_bounds[2 * kLevels] = {0, 0.07, 0.07, 0.28, 0.28, 1};

/* Of the command line. */
static char grid_kind[32], axis_kind[32];

static int is_grid(const char *kind) { return strcmp(grid_kind, kind) == 0; }

static double value_at(int field, long step, long level, long point) {
  const double v = 250 + 20 * sin(0.1 * point + field) + level + 0.5 * step;
  if (!is_grid("harmonics")) return v;
  /* Coefficients fall with their number; those of the zonal mean have no imaginary part. */
  return point < 2 * 16 && point % 2 == 1 ? 0 : v / (1 + point / 2);
}

static int missing_at(int field, long point) { return field == 1 && point % 5 == 2; }

static weir_grid *make_grid(weir_context *context, long *nx, long *ny) {
  weir_grid *grid = NULL;
  double lon[64], lat[32];
  *nx = 24, *ny = 12;
  for (long i = 0; i < *nx; i++) lon[i] = 15.0 * i;
  for (long j = 0; j < *ny; j++) lat[j] = 82.5 - 15.0 * j;
  if (is_grid("lonlat")) {
    TRY(weir_grid_create_lonlat(context, "globe", *nx, lon, *ny, lat, &grid, &err));
  } else if (is_grid("gaussian")) {
    TRY(weir_grid_create_gaussian(context, "globe", *nx, *ny, &grid, &err));
  } else {
    *nx = is_grid("named") ? 6114 : is_grid("harmonics") ? 16 * 17 : 2 * (20 + 24 + 28 + 32);
    *ny = 1;
    TRY(weir_grid_create_unstructured(context, "globe", *nx, &grid, &err));
  }
  return grid;
}

static weir_axis *make_axis(weir_context *context) {
  weir_axis *axis = NULL;
  for (size_t a = 0; a < sizeof axes / sizeof *axes; a++) {
    if (strcmp(axes[a].kind, axis_kind) != 0) continue;
    TRY(weir_axis_create(context, axes[a].name, kLevels, axes[a].values, axes[a].units, &axis,
                         &err));
    for (int i = 0; i < 4 && axes[a].attributes[i]; i += 2)
      TRY(weir_axis_set_text(axis, axes[a].attributes[i], axes[a].attributes[i + 1], &err));
    if (strcmp(axis_kind, "soil") == 0) TRY(weir_axis_set_bounds(axis, soil_bounds, &err));
  }
  return axis;
}

static const char *const names[3] = {"ta", "skt", "prate"};

static void describe(weir_field *field, int f) {
  TRY(weir_field_set_text(field, "units", f == 2 ? "kg m-2 s-1" : "K", &err));
  if (f == 0) TRY(weir_field_set_text(field, "standard_name", "air_temperature", &err));
  if (f == 1) TRY(weir_field_set_number(field, "missing_value", -1e20, &err));
  if (f == 2) TRY(weir_field_set_number(field, "GRIB_paramId", 3059, &err));
  if (is_grid("harmonics")) TRY(weir_field_set_text(field, "GRIB_gridType", "sh", &err));
  if (is_grid("octahedral")) TRY(weir_field_set_text(field, "GRIB_gridName", "O4", &err));
  if (is_grid("named")) TRY(weir_field_set_text(field, "GRIB_gridName", "N32", &err));
}

/* Spectral fields have no missing values: then the field of the surface is left out. */
static int writes(int field) { return field != 1 || !is_grid("harmonics"); }

static void read_back(MPI_Comm comm, const char *path, long steps, float *floats,
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
  grid = make_grid(context, &nx, &ny);
  TRY(weir_decomposition_create_indices(grid, "points", n, mine, &points, &err));
  axis = make_axis(context);
  for (int f = 0; f < 2; f++) {
    if (!writes(f)) continue;
    TRY(weir_field_create(points, names[f], WEIR_FLOAT32, f == 0, &axis, &field, &err));
    describe(field, f);
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
      if (!writes(f)) continue;
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

static void define(weir_context *context, weir_grid *grid, weir_decomposition *points,
                   const char *path, long begin, long n, weir_field **fields) {
  if (is_grid("cells")) {
    double *lon = malloc(sizeof *lon * (size_t)n), *lat = malloc(sizeof *lat * (size_t)n);
    for (long i = 0; i < n; i++) lon[i] = (begin + i) * 0.5, lat[i] = (begin + i) * 0.25;
    TRY(weir_grid_set_lonlat(grid, points, lon, lat, &err));
    free(lon);
    free(lat);
  }
  weir_axis *axis = make_axis(context);
  weir_stream *stream;
  TRY(weir_stream_create(context, "history", path, "grib2", &stream, &err));
  for (int f = 0; f < 3; f++) {
    if (!writes(f)) continue;
    TRY(weir_field_create(points, names[f], f == 2 ? WEIR_FLOAT64 : WEIR_FLOAT32, f == 0, &axis,
                          &fields[f], &err));
    describe(fields[f], f);
    TRY(weir_stream_add_field(stream, fields[f], f == 2 ? WEIR_MEAN : WEIR_INSTANT, &err));
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  if (argc < 5 || sscanf(argv[2], "%31[^+]+%31s", grid_kind, axis_kind) < 1) return 2;
  if (axis_kind[0] == '\0') strcpy(axis_kind, "pressure");
  const char *path = argv[4];
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
  weir_grid *grid = make_grid(context, &nx, &ny);
  const long total = nx * ny, begin = total * rank / ranks, n = total * (rank + 1) / ranks - begin;
  int64_t *mine = malloc(sizeof *mine * (size_t)n);
  for (long i = 0; i < n; i++) mine[i] = begin + i;
  weir_decomposition *points;
  TRY(weir_decomposition_create_indices(grid, "points", n, mine, &points, &err));
  double *data = malloc(sizeof *data * kLevels * (size_t)n);
  if (argc < 6) {
    weir_field *fields[3];
    define(context, grid, points, path, begin, n, fields);
    write_steps(context, fields, steps, begin, n, data);
  }
  TRY(weir_finalize(&context, &err));
  read_back(again, argc < 6 ? path : argv[5], steps, (float *)data, mine, n);
  free(data);
  free(mine);
  return MPI_Finalize();
}
