/* SPDX-License-Identifier: Apache-2.0
 * What the two writers through netCDF-C have in common: a file's dimensions and variables. */
#ifndef WEIR_BENCH_WRF_NETCDF_FILE_H
#define WEIR_BENCH_WRF_NETCDF_FILE_H

#include <netcdf.h>

#include "experiment.h"

static inline void must(int code, const char *what) {
  if (code != NC_NOERR) fail(what, nc_strerror(code));
}

/* In define mode; frames 0: time is unlimited. Nothing is filled: every value is written. */
static inline void define_file(int file, const struct domain *domain, size_t frames,
                               int variables[FIELDS], const char *path) {
  int dims[4], old;
  must(nc_set_fill(file, NC_NOFILL, &old), path);
  must(nc_def_dim(file, "Time", frames, &dims[0]), path);
  must(nc_def_dim(file, "bottom_top", LEVELS, &dims[1]), path);
  must(nc_def_dim(file, "south_north", (size_t)domain->ny, &dims[2]), path);
  must(nc_def_dim(file, "west_east", (size_t)domain->nx, &dims[3]), path);
  const int flat[3] = {dims[0], dims[2], dims[3]};
  for (int f = 0; f < FIELDS; f++) {
    const int deep = kFields[f].levels > 1;
    must(nc_def_var(file, kFields[f].name, NC_FLOAT, deep ? 4 : 3, deep ? dims : flat,
                    &variables[f]),
         path);
  }
  must(nc_enddef(file), path);
}
#endif
