// SPDX-License-Identifier: Apache-2.0
// Four ranks write three periods of a file type through a file view, a file for each way to make
// the type: case_NAME has rank + 1 in each byte that the rank sees.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PERIODS = 3, UNIT = 8, PERIOD = 192, MANY = 200, WHOLE = 1 << 16 };
static int rank, ranks;

static MPI_Datatype resized(MPI_Datatype type, MPI_Aint extent) {
  MPI_Datatype made;
  MPI_Type_create_resized(type, 0, extent, &made);
  MPI_Type_free(&type);
  return made;
}

// Zeros: ROMIO leaves any bytes in the gaps of a new file.
static void made(const char *path) {
  static char zeros[WHOLE];
  FILE *const file = rank == 0 ? fopen(path, "w") : NULL;
  if (file != NULL) fwrite(zeros, WHOLE, 1, file), fclose(file);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void written(const char *name, MPI_Datatype type, MPI_Offset displacement,
                    MPI_Datatype etype) {
  char path[64];
  MPI_File file;
  int bytes;
  snprintf(path, sizeof path, "case_%s", name);
  made(path);
  MPI_Type_commit(&type);
  MPI_Type_size(type, &bytes);
  char *const data = malloc((size_t)bytes * PERIODS);
  memset(data, rank + 1, (size_t)bytes * PERIODS);
  if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) ||
      MPI_File_set_view(file, displacement, etype, type, "native", MPI_INFO_NULL) ||
      MPI_File_write_all(file, data, bytes * PERIODS, MPI_BYTE, MPI_STATUS_IGNORE))
    printf("%s: cannot be written\n", path);
  MPI_File_close(&file);
  MPI_Type_free(&type);
  free(data);
}

static void by_rank(const char *name, MPI_Datatype type) {
  written(name, resized(type, PERIOD), rank * UNIT, MPI_BYTE);
}

static void arrays(void) {
  MPI_Datatype type;
  int sizes[] = {8, 8}, part[] = {4, 4}, at[] = {rank / 2 * 4, rank % 2 * 4};
  MPI_Type_create_subarray(2, sizes, part, at, MPI_ORDER_C, MPI_INT, &type);
  written("subarray", type, 0, MPI_INT);
  MPI_Type_create_subarray(2, sizes, part, at, MPI_ORDER_FORTRAN, MPI_INT, &type);
  written("subarray_fortran", type, 0, MPI_INT);
  int cube[] = {4, 6, 8}, slab[] = {2, 3, 8}, from[] = {rank / 2 * 2, rank % 2 * 3, 0};
  MPI_Type_create_subarray(3, cube, slab, from, MPI_ORDER_C, MPI_DOUBLE, &type);
  written("subarray_3d", type, 16, MPI_DOUBLE);
  int column[] = {4, 4, 6}, rows[] = {4, 2, 3}, begin[] = {0, rank / 2 * 2, rank % 2 * 3};
  MPI_Type_create_subarray(3, column, rows, begin, MPI_ORDER_C, MPI_INT, &type);
  written("levels", type, 0, MPI_INT);
  int global[] = {8, 11}, kinds[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC},
      arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, 2}, grid[] = {2, 2};
  MPI_Type_create_darray(ranks, rank, 2, global, kinds, arguments, grid, MPI_ORDER_C, MPI_SHORT,
                         &type);
  written("darray", type, 0, MPI_SHORT);
  int fortran[] = {7, 9}, mixed[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK},
      none[] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
  MPI_Type_create_darray(ranks, rank, 2, fortran, mixed, none, grid, MPI_ORDER_FORTRAN, MPI_SHORT,
                         &type);
  written("darray_fortran", type, 0, MPI_SHORT);
  int whole[] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK}, row[] = {1, 4};
  MPI_Type_create_darray(ranks, rank, 2, global, whole, none, row, MPI_ORDER_C, MPI_SHORT, &type);
  written("darray_none", type, 0, MPI_SHORT);
}

static void nested(void) {
  MPI_Datatype pair, twin, wide, type, inner;
  MPI_Aint at[] = {0, 4};
  int lengths[] = {1, 1};
  MPI_Datatype parts[] = {MPI_SHORT, MPI_CHAR};
  MPI_Type_create_struct(2, lengths, at, parts, &pair);  // bytes 0 1 4
  MPI_Type_dup(pair, &twin);
  wide = resized(twin, 16);
  MPI_Type_contiguous(2, wide, &inner);
  MPI_Type_create_hvector(2, 1, 96, inner, &type);
  MPI_Type_free(&pair), MPI_Type_free(&wide), MPI_Type_free(&inner);
  // 0 1 4, 16 17 20, 96 97 100, 112 113 116: two at 8 r, the gap is another rank's where r is odd
  written("nested", resized(type, PERIOD), rank / 2 * 8 + rank % 2 * 32, MPI_BYTE);
}

static void irregular(void) {
  int lengths[MANY], at[MANY];
  for (int i = 0, next = 0; i < MANY; ++i) {
    lengths[i] = 1 + i % 3;
    at[i] = next + i % 2;
    next += (i * i) % 7 + 5;
  }
  MPI_Datatype type;
  MPI_Type_indexed(MANY, lengths, at, MPI_CHAR, &type);
  written("irregular", resized(type, 4096), rank * 4096 * PERIODS, MPI_CHAR);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Datatype type, parts[] = {MPI_INT, MPI_DOUBLE, MPI_CHAR};
  int lengths[] = {1, 2, 1}, at[] = {0, 16, 36}, members[] = {1, 1, 3};
  MPI_Aint bytes[] = {0, 64, 144};
  MPI_Type_contiguous(6, MPI_INT, &type), written("contiguous", type, rank * 1000, MPI_INT);
  MPI_Type_vector(3, 2, 16, MPI_INT, &type), by_rank("vector", type);
  MPI_Type_create_hvector(3, 1, 64, MPI_INT, &type), by_rank("hvector", type);
  MPI_Type_indexed(3, lengths, at, MPI_INT, &type), by_rank("indexed", type);
  MPI_Type_create_hindexed(3, lengths, bytes, MPI_INT, &type), by_rank("hindexed", type);
  MPI_Type_create_indexed_block(3, 2, at, MPI_INT, &type), by_rank("indexed_block", type);
  MPI_Type_create_hindexed_block(3, 2, bytes, MPI_INT, &type), by_rank("hindexed_block", type);
  MPI_Type_create_struct(3, members, bytes, parts, &type), by_rank("struct", type);
  arrays();
  nested();
  irregular();
  MPI_Finalize();
}
