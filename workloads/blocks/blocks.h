/* SPDX-License-Identifier: Apache-2.0
 * One file of words, written and read by all ranks in blocks, through one of several libraries. */
#ifndef WEIR_WORKLOAD_BLOCKS_H
#define WEIR_WORKLOAD_BLOCKS_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

struct blocks_options {
  const char *file;
  int64_t words;   /* of the whole file */
  int collective;  /* each transfer is a call of all ranks */
  MPI_Info hints;
};

/* A library's way to the file. Each call returns null, or what the library says of what failed. All
 * are collective, but for reads and writes of a run that is not. */
struct blocks_api {
  const char *name;
  const char *(*create)(const struct blocks_options *options);
  const char *(*open)(const struct blocks_options *options);
  const char *(*write)(int64_t first, int64_t count, const uint64_t *words);
  const char *(*read)(int64_t first, int64_t count, uint64_t *words);
  const char *(*close)(void);
};

/* Those of this program: its MPI's packages decide. */
extern const struct blocks_api kBlocksMpiIo, kBlocksHdf5, kBlocksNetcdf4, kBlocksPnetcdf;
#ifdef BLOCKS_HDF5
#define BLOCKS_HAS_HDF5 ", hdf5"
#else
#define BLOCKS_HAS_HDF5
#endif
#ifdef BLOCKS_NETCDF
#define BLOCKS_HAS_NETCDF ", netcdf4"
#else
#define BLOCKS_HAS_NETCDF
#endif
#ifdef BLOCKS_PNETCDF
#define BLOCKS_HAS_PNETCDF ", pnetcdf"
#else
#define BLOCKS_HAS_PNETCDF
#endif
#define BLOCKS_APIS "mpiio" BLOCKS_HAS_HDF5 BLOCKS_HAS_NETCDF BLOCKS_HAS_PNETCDF

#endif
