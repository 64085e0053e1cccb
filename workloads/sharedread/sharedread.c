/* SPDX-License-Identifier: Apache-2.0
 * All ranks read the whole of one variable from one classic netCDF file, as a climate model's ranks
 * read a boundary data set: each opens the file with the serial library and takes slab after slab.
 * Data begin behind a header of no round size and a slab is no multiple of a sector, so requests
 * are ill-formed. --setup writes the file, by rank 0. */
#include <mpi.h>
#include <netcdf.h>
#include <stdlib.h>
#include <string.h>

#include "workload.h"

enum { kDims = 4 };

static const char *file = "climate.nc";
static int64_t times = 38, levels = 26, latitudes = 91, longitudes = 181, chunk_bytes = 0;
static double compute_s = 0;
static int setup = 0;

static const struct workload_option options[] = {
    {"file", 's', &file, "the file (climate.nc)"},
    {"setup", 'f', &setup, "write the file and end"},
    {"times", 'i', &times, "first dimension of the variable (38)"},
    {"levels", 'i', &levels, "second dimension; a slab is one level of one time (26)"},
    {"latitudes", 'i', &latitudes, "third dimension (91)"},
    {"longitudes", 'i', &longitudes, "fourth dimension (181)"},
    {"chunk", 'i', &chunk_bytes, "bytes of netCDF's own buffer (its default)"},
    {"compute", 'd', &compute_s, "seconds of computing between the times, in all (0)"},
    {0}};

static void need(const struct workload *w, int status) {
  if (status != NC_NOERR) workload_fail(w, file, nc_strerror(status));
}

static int64_t slab_floats(void) { return latitudes * longitudes; }

/* Integers below 2^24 are floats exactly. */
static float value(int64_t index) { return (float)(workload_word(3, (uint64_t)index) >> 40); }

static void write_file(struct workload *w) {
  static const char *names[kDims] = {"time", "lev", "lat", "lon"};
  const size_t sizes[kDims] = {(size_t)times, (size_t)levels, (size_t)latitudes,
                               (size_t)longitudes};
  int id, dims[kDims], variable;
  need(w, nc_create(file, NC_CLOBBER, &id));
  for (int d = 0; d < kDims; ++d) need(w, nc_def_dim(id, names[d], sizes[d], &dims[d]));
  need(w, nc_def_var(id, "T", NC_FLOAT, kDims, dims, &variable));
  need(w, nc_put_att_text(id, variable, "units", 1, "K"));
  need(w, nc_put_att_text(id, NC_GLOBAL, "title", 26, "boundary data of a climate"));
  need(w, nc_set_fill(id, NC_NOFILL, NULL));
  need(w, nc_enddef(id));
  float *time = malloc(sizeof *time * (size_t)(levels * slab_floats()));
  for (int64_t t = 0; t < times; ++t) {
    const int64_t count = levels * slab_floats();
    for (int64_t i = 0; i < count; ++i) time[i] = value(t * count + i);
    const size_t start[kDims] = {(size_t)t, 0, 0, 0},
                 edges[kDims] = {1, sizes[1], sizes[2], sizes[3]};
    const double begun = workload_clock();
    need(w, nc_put_vara_float(id, variable, start, edges, time));
    w->io_wait_s += workload_clock() - begun;
    w->requests++, w->bytes += (uint64_t)count * sizeof *time;
  }
  need(w, nc_close(id));
  free(time);
}

static void compute(float *slab, double seconds) {
  const double end = workload_clock() + seconds;
  while (workload_clock() < end)
    for (int64_t i = 1; i + 1 < slab_floats(); ++i)
      slab[i] = 0.25f * slab[i - 1] + 0.5f * slab[i] + 0.25f * slab[i + 1];
}

static int open_file(struct workload *w, int *variable) {
  int id;
  size_t chunk = chunk_bytes > 0 ? (size_t)chunk_bytes : NC_SIZEHINT_DEFAULT;
  const double begun = workload_clock();
  need(w, nc__open(file, NC_NOWRITE, &chunk, &id));
  w->io_wait_s += workload_clock() - begun;
  need(w, nc_inq_varid(id, "T", variable));
  int dims[kDims];
  const int64_t expected[kDims] = {times, levels, latitudes, longitudes};
  need(w, nc_inq_vardimid(id, *variable, dims));
  for (int d = 0; d < kDims; ++d) {
    size_t length;
    need(w, nc_inq_dimlen(id, dims[d], &length));
    if ((int64_t)length != expected[d])
      workload_fail(w, file,
                    "was written with other sizes; give the same to --setup and to the run");
  }
  return id;
}

static void read_variable(struct workload *w) {
  int variable;
  const int id = open_file(w, &variable);
  float *slab = malloc(sizeof *slab * (size_t)slab_floats());
  for (int64_t t = 0; t < times; ++t) {
    for (int64_t l = 0; l < levels; ++l) {
      const size_t start[kDims] = {(size_t)t, (size_t)l, 0, 0},
                   edges[kDims] = {1, 1, (size_t)latitudes, (size_t)longitudes};
      const double begun = workload_clock();
      need(w, nc_get_vara_float(id, variable, start, edges, slab));
      w->io_wait_s += workload_clock() - begun;
      w->requests++, w->bytes += (uint64_t)slab_floats() * sizeof *slab;
      const int64_t first = (t * levels + l) * slab_floats();
      for (int64_t i = 0; i < slab_floats(); ++i) w->wrong += slab[i] != value(first + i);
    }
    compute(slab, compute_s / (double)times);
  }
  const double begun = workload_clock();
  need(w, nc_close(id));
  w->io_wait_s += workload_clock() - begun;
  free(slab);
}

int main(int argc, char **argv) {
  struct workload w;
  workload_begin(&w, "sharedread", &argc, &argv, options);
  if (times < 1 || levels < 1 || latitudes < 1 || longitudes < 2)
    workload_fail(&w, file, "sizes must be positive");
  workload_start(&w);
  if (!setup) {
    read_variable(&w);
  } else if (w.rank == 0) {
    write_file(&w);
  }
  workload_stop(&w);
  return workload_end(&w);
}
