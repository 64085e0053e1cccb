/* SPDX-License-Identifier: Apache-2.0
 * netCDF-4 in parallel: all ranks write together through HDF5. Time has the length of the file,
 * one, so that variables are contiguous: with an unlimited one HDF5 writes chunks, and is slower.
 */
#include "netcdf_file.h"

#include <netcdf_par.h>

static void write_domain(struct run *run, int d, int frame) {
  const struct domain *domain = &run->domains[d];
  char path[MAX_PATH];
  int file, variables[FIELDS];
  frame_path(&run->options, kWriter.name, d, frame, path);
  must(nc_create_par(path, NC_CLOBBER | NC_NETCDF4, run->model, MPI_INFO_NULL, &file), path);
  define_file(file, domain, 1, variables, path);
  for (int f = 0; f < FIELDS; f++) {
    const int skip = kFields[f].levels > 1 ? 0 : 1;
    size_t first[4] = {0, 0, (size_t)domain->j0, (size_t)domain->i0},
           count[4] = {1, LEVELS, (size_t)domain->nj, (size_t)domain->ni};
    first[skip] = 0, count[skip] = 1;
    must(nc_var_par_access(file, variables[f], NC_COLLECTIVE), path);
    must(nc_put_vara_float(file, variables[f], first + skip, count + skip, run->data[d][f]), path);
  }
  if (run->options.sync) must(nc_sync(file), path);
  must(nc_close(file), path);
}

const struct writer kWriter = {.name = "netcdf4", .write_domain = write_domain};
