// SPDX-License-Identifier: Apache-2.0
// Every shape of access for every numeric type, through netCDF-C or PnetCDF (-DPNETCDF); what is
// read back is compared with what was written.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef PNETCDF
#include <pnetcdf.h>
typedef MPI_Offset count_t;
typedef MPI_Offset stride_t;
#else
#include <netcdf.h>
typedef size_t count_t;
typedef ptrdiff_t stride_t;
#endif

enum { Y = 4, X = 6, ALL = Y * X };
static int file, variable, request, status;
#define DO(call) \
  do { \
    const int e_ = (call); \
    if (e_ != 0) fprintf(stderr, "%s: %d\n", #call, e_), exit(1); \
  } while (0)

static const count_t start[2] = {0, 0}, whole[2] = {Y, X}, sparse[2] = {2, 2}, at[2] = {3, 5};
static const stride_t unit[2] = {1, 1}, stride[2] = {2, 3}, turned[2] = {1, Y};

// Written and read through one shape: the same n values come back.
#define SAME(what, type, n, put, get)                                                        \
  do {                                                                                       \
    type out[ALL], in[ALL];                                                                  \
    for (int i = 0; i < ALL; ++i) out[i] = (type)((i * 7 + (n)) % 100), in[i] = 0;           \
    put;                                                                                     \
    get;                                                                                     \
    if (memcmp(out, in, (n) * sizeof *in) != 0) printf("%s of %s: other values\n", what, #type); \
  } while (0)

#ifdef PNETCDF
static count_t first[2] = {1, 0}, second[2] = {3, 0}, row[2] = {1, X};
static count_t *const starts[2] = {first, second}, *const rows[2] = {row, row};
#define WAIT DO(ncmpi_wait_all(file, 1, &request, &status))
#define BLOCKING(name, type, end)                                                                 \
  SAME("vara", type, ALL, DO(ncmpi_put_vara_##name##end(file, variable, start, whole, out)),      \
       DO(ncmpi_get_vara_##name##end(file, variable, start, whole, in)));                         \
  SAME("vars", type, 4,                                                                           \
       DO(ncmpi_put_vars_##name##end(file, variable, start, sparse, stride, out)),                \
       DO(ncmpi_get_vars_##name##end(file, variable, start, sparse, stride, in)));                \
  SAME("varm", type, ALL,                                                                         \
       DO(ncmpi_put_varm_##name##end(file, variable, start, whole, unit, turned, out)),           \
       DO(ncmpi_get_varm_##name##end(file, variable, start, whole, unit, turned, in)));           \
  SAME("var1", type, 1, DO(ncmpi_put_var1_##name##end(file, variable, at, out)),                  \
       DO(ncmpi_get_var1_##name##end(file, variable, at, in)));                                   \
  SAME("varn", type, 2 * X, DO(ncmpi_put_varn_##name##end(file, variable, 2, starts, rows, out)), \
       DO(ncmpi_get_varn_##name##end(file, variable, 2, starts, rows, in)));
#define WHOLE(name, type, put, get) \
  SAME("var", type, ALL, DO(put(file, variable, out)), DO(get(file, variable, in)));
#define QUEUED(kind, name, type)                                                                   \
  SAME("vara", type, ALL,                                                                          \
       DO(ncmpi_##kind##_vara_##name(file, variable, start, whole, out, &request));                \
       WAIT, DO(ncmpi_iget_vara_##name(file, variable, start, whole, in, &request)); WAIT);        \
  SAME("vars", type, 4,                                                                            \
       DO(ncmpi_##kind##_vars_##name(file, variable, start, sparse, stride, out, &request));       \
       WAIT, DO(ncmpi_iget_vars_##name(file, variable, start, sparse, stride, in, &request));      \
       WAIT);                                                                                      \
  SAME("varm", type, ALL,                                                                          \
       DO(ncmpi_##kind##_varm_##name(file, variable, start, whole, unit, turned, out, &request));  \
       WAIT, DO(ncmpi_iget_varm_##name(file, variable, start, whole, unit, turned, in, &request)); \
       WAIT);                                                                                      \
  SAME("var1", type, 1, DO(ncmpi_##kind##_var1_##name(file, variable, at, out, &request));         \
       WAIT, DO(ncmpi_iget_var1_##name(file, variable, at, in, &request)); WAIT);                  \
  SAME("varn", type, 2 * X,                                                                        \
       DO(ncmpi_##kind##_varn_##name(file, variable, 2, starts, rows, out, &request));             \
       WAIT, DO(ncmpi_iget_varn_##name(file, variable, 2, starts, rows, in, &request)); WAIT);     \
  SAME("var", type, ALL, DO(ncmpi_##kind##_var_##name(file, variable, out, &request));             \
       WAIT, DO(ncmpi_iget_var_##name(file, variable, in, &request)); WAIT);
#define COLLECTIVE(name, type)                                              \
  BLOCKING(name, type, _all)                                                \
  WHOLE(name, type, ncmpi_put_var_##name##_all, ncmpi_get_var_##name##_all) \
      QUEUED(iput, name, type) QUEUED(bput, name, type)
#define ALONE(name, type) \
  BLOCKING(name, type, ) WHOLE(name, type, ncmpi_put_var_##name, ncmpi_get_var_##name)
#else
#define COLLECTIVE(name, type)                                                                     \
  SAME("vara", type, ALL, DO(nc_put_vara_##name(file, variable, start, whole, out)),               \
       DO(nc_get_vara_##name(file, variable, start, whole, in)));                                  \
  SAME("vars", type, 4, DO(nc_put_vars_##name(file, variable, start, sparse, stride, out)),        \
       DO(nc_get_vars_##name(file, variable, start, sparse, stride, in)));                         \
  SAME("varm", type, ALL, DO(nc_put_varm_##name(file, variable, start, whole, unit, turned, out)), \
       DO(nc_get_varm_##name(file, variable, start, whole, unit, turned, in)));                    \
  SAME("var1", type, 1, DO(nc_put_var1_##name(file, variable, at, out)),                           \
       DO(nc_get_var1_##name(file, variable, at, in)));                                            \
  SAME("var", type, ALL, DO(nc_put_var_##name(file, variable, out)),                               \
       DO(nc_get_var_##name(file, variable, in)));
#endif

#define TYPES(DOES)                                                                         \
  DOES(schar, signed char)                                                                  \
  DOES(uchar, unsigned char) DOES(short, short) DOES(ushort, unsigned short) DOES(int, int) \
      DOES(uint, unsigned) DOES(long, long) DOES(float, float) DOES(double, double)         \
          DOES(longlong, long long) DOES(ulonglong, unsigned long long)

int main(int argc, char **argv) {
  int dims[2];
#ifdef PNETCDF
  MPI_Init(&argc, &argv);
  DO(ncmpi_create(MPI_COMM_WORLD, "shapes.nc", NC_64BIT_DATA, MPI_INFO_NULL, &file));
  DO(ncmpi_def_dim(file, "y", Y, &dims[0]));
  DO(ncmpi_def_dim(file, "x", X, &dims[1]));
  DO(ncmpi_def_var(file, "V", NC_DOUBLE, 2, dims, &variable));
  DO(ncmpi_enddef(file));
  DO(ncmpi_buffer_attach(file, 1 << 16));
  TYPES(COLLECTIVE)
  DO(ncmpi_buffer_detach(file));
  DO(ncmpi_begin_indep_data(file));
  TYPES(ALONE)
  DO(ncmpi_end_indep_data(file));
  DO(ncmpi_close(file));
  MPI_Finalize();
#else
  (void)argc, (void)argv, (void)request, (void)status;
  DO(nc_create("shapes.nc", NC_CLOBBER, &file));
  DO(nc_def_dim(file, "y", Y, &dims[0]));
  DO(nc_def_dim(file, "x", X, &dims[1]));
  DO(nc_def_var(file, "V", NC_DOUBLE, 2, dims, &variable));
  DO(nc_enddef(file));
  TYPES(COLLECTIVE)
  COLLECTIVE(ubyte, unsigned char)
  SAME("any vara", double, ALL, DO(nc_put_vara(file, variable, start, whole, out)),
       DO(nc_get_vara(file, variable, start, whole, in)));
  SAME("any vars", double, 4, DO(nc_put_vars(file, variable, start, sparse, stride, out)),
       DO(nc_get_vars(file, variable, start, sparse, stride, in)));
  SAME("any varm", double, ALL, DO(nc_put_varm(file, variable, start, whole, unit, turned, out)),
       DO(nc_get_varm(file, variable, start, whole, unit, turned, in)));
  SAME("any var1", double, 1, DO(nc_put_var1(file, variable, at, out)),
       DO(nc_get_var1(file, variable, at, in)));
  SAME("any var", double, ALL, DO(nc_put_var(file, variable, out)),
       DO(nc_get_var(file, variable, in)));
  DO(nc_close(file));
#endif
  return 0;
}
