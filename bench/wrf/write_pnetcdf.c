/* SPDX-License-Identifier: Apache-2.0
 * Plain PnetCDF: all ranks write together, by MPI-IO as it is set up by default. */
#include <pnetcdf.h>

#include "experiment.h"

static void must(int code, const char *what) {
  if (code != NC_NOERR) fail(what, ncmpi_strerror(code));
}

static void write_domain(struct run *run, int d, int frame) {
  const struct domain *domain = &run->domains[d];
  char path[MAX_PATH];
  int file, dims[4], variables[FIELDS];
  frame_path(&run->options, kWriter.name, d, frame, path);
  must(ncmpi_create(run->model, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file), path);
  must(ncmpi_def_dim(file, "Time", NC_UNLIMITED, &dims[0]), path);
  must(ncmpi_def_dim(file, "bottom_top", LEVELS, &dims[1]), path);
  must(ncmpi_def_dim(file, "south_north", domain->ny, &dims[2]), path);
  must(ncmpi_def_dim(file, "west_east", domain->nx, &dims[3]), path);
  const int flat[3] = {dims[0], dims[2], dims[3]};
  for (int f = 0; f < FIELDS; f++) {
    const int deep = kFields[f].levels > 1;
    must(ncmpi_def_var(file, kFields[f].name, NC_FLOAT, deep ? 4 : 3, deep ? dims : flat,
                       &variables[f]),
         path);
  }
  must(ncmpi_enddef(file), path);
  for (int f = 0; f < FIELDS; f++) {
    const int skip = kFields[f].levels > 1 ? 0 : 1;
    MPI_Offset first[4] = {0, 0, domain->j0, domain->i0},
               count[4] = {1, LEVELS, domain->nj, domain->ni};
    first[skip] = 0, count[skip] = 1;
    must(ncmpi_put_vara_float_all(file, variables[f], first + skip, count + skip, run->data[d][f]),
         path);
  }
  if (run->options.sync) must(ncmpi_sync(file), path);
  must(ncmpi_close(file), path);
}

const struct writer kWriter = {.name = "pnetcdf", .write_domain = write_domain};
