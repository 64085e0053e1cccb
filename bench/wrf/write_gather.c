/* SPDX-License-Identifier: Apache-2.0
 * What WRF does by default: each field is gathered on rank 0, which puts it in order and writes it
 * through netCDF-C, while the others wait. */
#include <stdlib.h>
#include <string.h>

#include "netcdf_file.h"

static float *gathered, *ordered; /* on rank 0, for the greatest field */
static int *counts, *places;

static void define(struct run *run) {
  size_t most = 0;
  for (int d = 0; d < DOMAINS; d++) {
    const size_t points = (size_t)(run->domains[d].nx * run->domains[d].ny);
    if (points > most) most = points;
  }
  counts = calloc((size_t)run->size, sizeof *counts),
  places = calloc((size_t)run->size, sizeof *places);
  if (run->rank == 0)
    gathered = malloc(most * LEVELS * sizeof(float)),
    ordered = malloc(most * LEVELS * sizeof(float));
  if (counts == NULL || places == NULL || (run->rank == 0 && (gathered == NULL || ordered == NULL)))
    fail("memory", "refused");
  if (run->rank == 0)
    memset(gathered, 0, most * LEVELS * sizeof(float)),
        memset(ordered, 0, most * LEVELS * sizeof(float));
}

/* Blocks, one rank after the other, into rows of the whole domain. */
static void order(const struct run *run, const struct domain *domain, int levels) {
  for (int rank = 0; rank < run->size; rank++) {
    long i0, ni, j0, nj;
    share(domain->nx, run->columns, rank % run->columns, &i0, &ni);
    share(domain->ny, run->rows, rank / run->columns, &j0, &nj);
    const float *from = gathered + places[rank];
    for (long row = 0; row < levels * nj; row++)
      memcpy(ordered + (row / nj * domain->ny + j0 + row % nj) * domain->nx + i0, from + row * ni,
             (size_t)ni * sizeof(float));
  }
}

static void gather(struct run *run, int d, int f) {
  int place = 0;
  for (int rank = 0; rank < run->size; rank++) {
    long unused, ni, nj;
    share(run->domains[d].nx, run->columns, rank % run->columns, &unused, &ni);
    share(run->domains[d].ny, run->rows, rank / run->columns, &unused, &nj);
    counts[rank] = (int)(ni * nj * kFields[f].levels), places[rank] = place;
    place += counts[rank];
  }
  MPI_Gatherv(run->data[d][f], (int)local_count(run, d, f), MPI_FLOAT, gathered, counts, places,
              MPI_FLOAT, 0, run->model);
  if (run->rank == 0) order(run, &run->domains[d], kFields[f].levels);
}

static void write_domain(struct run *run, int d, int frame) {
  const struct domain *domain = &run->domains[d];
  char path[MAX_PATH];
  int file = 0, variables[FIELDS];
  frame_path(&run->options, kWriter.name, d, frame, path);
  if (run->rank == 0) {
    must(nc_create(path, NC_CLOBBER | NC_64BIT_DATA, &file), path);
    define_file(file, domain, NC_UNLIMITED, variables, path);
  }
  for (int f = 0; f < FIELDS; f++) {
    gather(run, d, f);
    if (run->rank != 0) continue;
    const int skip = kFields[f].levels > 1 ? 0 : 1;
    const size_t first[4] = {0}, all[4] = {1, LEVELS, (size_t)domain->ny, (size_t)domain->nx};
    const size_t flat[3] = {1, (size_t)domain->ny, (size_t)domain->nx};
    must(nc_put_vara_float(file, variables[f], first, skip ? flat : all, ordered), path);
  }
  if (run->rank == 0) must(nc_close(file), path);
  MPI_Barrier(run->model);
}

const struct writer kWriter = {.name = "gather", .define = define, .write_domain = write_domain};
