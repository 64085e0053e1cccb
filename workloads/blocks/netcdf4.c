/* SPDX-License-Identifier: Apache-2.0
 * Blocks of one variable, "words", through parallel netCDF-4. */
#include <netcdf.h>
#include <netcdf_par.h>

#include "blocks.h"

static int file, variable;

static const char *said(int code) { return code == NC_NOERR ? NULL : nc_strerror(code); }

static int access_as(const struct blocks_options *o) {
  return nc_var_par_access(file, variable, o->collective ? NC_COLLECTIVE : NC_INDEPENDENT);
}

static const char *create(const struct blocks_options *o) {
  int dimension,
      code = nc_create_par(o->file, NC_NETCDF4 | NC_CLOBBER, MPI_COMM_WORLD, o->hints, &file);
  if (code == NC_NOERR) code = nc_def_dim(file, "word", (size_t)o->words, &dimension);
  if (code == NC_NOERR) code = nc_def_var(file, "words", NC_UINT64, 1, &dimension, &variable);
  if (code == NC_NOERR) code = nc_def_var_fill(file, variable, NC_NOFILL, NULL);
  if (code == NC_NOERR) code = nc_enddef(file);
  return said(code == NC_NOERR ? access_as(o) : code);
}

static const char *open_again(const struct blocks_options *o) {
  int code = nc_open_par(o->file, NC_NOWRITE, MPI_COMM_WORLD, o->hints, &file);
  if (code == NC_NOERR) code = nc_inq_varid(file, "words", &variable);
  return said(code == NC_NOERR ? access_as(o) : code);
}

static const char *write_words(int64_t first, int64_t count, const uint64_t *words) {
  return said(nc_put_vara_ulonglong(file, variable, (size_t[]){(size_t)first},
                                    (size_t[]){(size_t)count}, (const unsigned long long *)words));
}

static const char *read_words(int64_t first, int64_t count, uint64_t *words) {
  return said(nc_get_vara_ulonglong(file, variable, (size_t[]){(size_t)first},
                                    (size_t[]){(size_t)count}, (unsigned long long *)words));
}

static const char *close_file(void) { return said(nc_close(file)); }

const struct blocks_api kBlocksNetcdf4 = {"netcdf4",   create,     open_again,
                                          write_words, read_words, close_file};
