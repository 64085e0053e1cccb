/* SPDX-License-Identifier: Apache-2.0
 * Blocks of one variable, "words", of a CDF-5 file through PnetCDF. */
#include <pnetcdf.h>

#include "blocks.h"

static int file, variable, collective;

static const char *said(int code) { return code == NC_NOERR ? NULL : ncmpi_strerror(code); }

static int begin(const struct blocks_options *o) {
  collective = o->collective;
  return collective ? NC_NOERR : ncmpi_begin_indep_data(file);
}

static const char *create(const struct blocks_options *o) {
  int dimension,
      code = ncmpi_create(MPI_COMM_WORLD, o->file, NC_64BIT_DATA | NC_CLOBBER, o->hints, &file);
  if (code == NC_NOERR) code = ncmpi_def_dim(file, "word", o->words, &dimension);
  if (code == NC_NOERR) code = ncmpi_def_var(file, "words", NC_UINT64, 1, &dimension, &variable);
  if (code == NC_NOERR) code = ncmpi_enddef(file);
  return said(code == NC_NOERR ? begin(o) : code);
}

static const char *open_again(const struct blocks_options *o) {
  int code = ncmpi_open(MPI_COMM_WORLD, o->file, NC_NOWRITE, o->hints, &file);
  if (code == NC_NOERR) code = ncmpi_inq_varid(file, "words", &variable);
  return said(code == NC_NOERR ? begin(o) : code);
}

static const char *write_words(int64_t first, int64_t count, const uint64_t *words) {
  const MPI_Offset at = first, n = count;
  const unsigned long long *from = (const unsigned long long *)words;
  return said(collective ? ncmpi_put_vara_ulonglong_all(file, variable, &at, &n, from)
                         : ncmpi_put_vara_ulonglong(file, variable, &at, &n, from));
}

static const char *read_words(int64_t first, int64_t count, uint64_t *words) {
  const MPI_Offset at = first, n = count;
  unsigned long long *to = (unsigned long long *)words;
  return said(collective ? ncmpi_get_vara_ulonglong_all(file, variable, &at, &n, to)
                         : ncmpi_get_vara_ulonglong(file, variable, &at, &n, to));
}

static const char *close_file(void) { return said(ncmpi_close(file)); }

const struct blocks_api kBlocksPnetcdf = {"pnetcdf",   create,     open_again,
                                          write_words, read_words, close_file};
