/* SPDX-License-Identifier: Apache-2.0
 * A model that is only its output: temperature on three levels and surface pressure of a small
 * globe, every hour for six hours. The same fields as examples/fortran/output.f90 and
 * examples/python/output.py write, and the same files to the byte.
 *   mpicc -o output output.c -I<weir>/include -L<weir>/lib/<mpi> -lweir -Wl,-rpath,<weir>/lib/<mpi>
 *   mpirun -n 4 ./output [output.toml] */
#include <stdio.h>
#include <stdlib.h>
#include <weir/mpi.h>
#include <weir/weir.h>

enum { NX = 36, NY = 18, LEVELS = 3, STEPS = 7 };

static weir_error err;

/* Every call returns a code and fills err. Here an error ends the program. */
static void must(int code) {
  if (code == WEIR_OK) return;
  fprintf(stderr, "%s: %s\n", weir_status_name(code), err.message);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Any numbers, the same in all three languages and exact in float32. */
static double value(int i, int j, int level, int step) {
  return 250.0 + (double)((j * NX + i) * 7 % 1013 + level * 40 + step * 3) / 8.0;
}

/* Columns and rows of this rank: blocks as equal as possible. */
static void share(int n, int parts, int part, int *first, int *count) {
  *first = (int)((long)n * part / parts);
  *count = (int)((long)n * (part + 1) / parts) - *first;
}

static void fill(float *t, double *ps, int i0, int ni, int j0, int nj, int step) {
  for (int level = 0; level < LEVELS; level++) {
    for (int j = 0; j < nj; j++) {
      for (int i = 0; i < ni; i++)
        t[(level * nj + j) * ni + i] = (float)value(i0 + i, j0 + j, level, step);
    }
  }
  for (int j = 0; j < nj; j++) {
    for (int i = 0; i < ni; i++) ps[j * ni + i] = 100000.0 + value(i0 + i, j0 + j, 0, step);
  }
}

static weir_grid *make_grid(weir_context *context) {
  double lon[NX], lat[NY];
  weir_grid *grid = NULL;
  for (int i = 0; i < NX; i++) lon[i] = 10.0 * i;
  for (int j = 0; j < NY; j++) lat[j] = -85.0 + 10.0 * j;
  must(weir_grid_create_lonlat(context, "globe", NX, lon, NY, lat, &grid, &err));
  return grid;
}

static weir_axis *make_levels(weir_context *context) {
  const double pressure[LEVELS] = {850, 500, 250};
  weir_axis *axis = NULL;
  must(weir_axis_create(context, "plev", LEVELS, pressure, "hPa", &axis, &err));
  must(weir_axis_set_text(axis, "standard_name", "air_pressure", &err));
  must(weir_axis_set_text(axis, "positive", "down", &err));
  return axis;
}

static void run(weir_context *context, int i0, int ni, int j0, int nj) {
  weir_grid *grid = make_grid(context);
  weir_axis *levels = make_levels(context);
  weir_decomposition *blocks = NULL;
  weir_field *t = NULL, *ps = NULL;
  weir_stream *history = NULL;
  must(weir_context_set_time(context, "2026-11-21 00:00:00", "proleptic_gregorian", &err));
  must(weir_context_set_text(context, "title", "output example", &err));
  must(weir_decomposition_create_block(grid, "blocks", i0, ni, j0, nj, &blocks, &err));
  must(weir_field_create(blocks, "ta", WEIR_FLOAT32, 1, &levels, &t, &err));
  must(weir_field_set_text(t, "units", "K", &err));
  must(weir_field_set_text(t, "standard_name", "air_temperature", &err));
  must(weir_field_create(blocks, "ps", WEIR_FLOAT64, 0, NULL, &ps, &err));
  must(weir_field_set_text(ps, "units", "Pa", &err));
  must(weir_field_set_text(ps, "standard_name", "surface_air_pressure", &err));
  must(weir_stream_create(context, "history", "history_%Y%m%d%H.nc", "cdf5", &history, &err));
  must(weir_stream_set_every(history, 3600, &err));
  must(weir_stream_set_rotation(history, 3, &err)); /* frames of a file */
  must(weir_stream_add_field(history, t, WEIR_INSTANT, &err));
  must(weir_stream_add_field(history, ps, WEIR_INSTANT, &err));

  float *t_data = malloc(sizeof *t_data * (size_t)(ni * nj * LEVELS + 1));
  double *ps_data = malloc(sizeof *ps_data * (size_t)(ni * nj + 1));
  for (int step = 0; step < STEPS; step++) {
    fill(t_data, ps_data, i0, ni, j0, nj, step);
    must(weir_step(context, 3600.0 * step, &err));
    must(weir_put(t, t_data, &err));
    must(weir_put(ps, ps_data, &err));
    must(weir_end_step(context,
                       &err)); /* returns before the data are on disk, in modes with servers */
  }
  free(t_data);
  free(ps_data);
}

int main(int argc, char **argv) {
  MPI_Comm model;
  weir_context *context = NULL;
  MPI_Init(&argc, &argv);
  must(weir_init(MPI_COMM_WORLD, argc > 1 ? argv[1] : NULL, &model, &context, &err));
  if (context) { /* null on ranks that have been servers: when weir_init returns there, all is
                    written */
    int rank, size, dims[2] = {0, 0}, i0, ni, j0, nj;
    MPI_Comm_rank(model, &rank);
    MPI_Comm_size(model, &size);
    MPI_Dims_create(size, 2, dims);
    share(NX, dims[0], rank % dims[0], &i0, &ni);
    share(NY, dims[1], rank / dims[0], &j0, &nj);
    run(context, i0, ni, j0, nj);
    must(weir_finalize(&context, &err));
  }
  MPI_Finalize();
  return 0;
}
