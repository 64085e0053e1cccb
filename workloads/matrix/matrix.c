/* SPDX-License-Identifier: Apache-2.0
 * Write a large distributed matrix by MPI-IO: rows x columns doubles in column order, rows in
 * blocks over the ranks, so that each rank holds a piece of each column and its data are as many
 * pieces of the file as there are columns.
 *   --mode noview      one MPI_File_write_at for each piece
 *   --mode view        a file view, then one independent write
 *   --mode collective  a file view, then one collective write
 * --verify reads the file back instead, each rank the columns of its number in large pieces, and
 * compares. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workload.h"

static const char *file = "matrix.dat", *mode = "noview";
static int64_t rows = 70400, columns = 2000;
static int verify = 0;

static const struct workload_option options[] = {
    {"file", 's', &file, "the file (matrix.dat)"},
    {"rows", 'i', &rows, "rows, divided over the ranks (70400)"},
    {"columns", 'i', &columns, "columns (2000)"},
    {"mode", 's', &mode, "noview, view or collective (noview)"},
    {"verify", 'f', &verify, "read and compare instead"},
    {0}};

static void need(const struct workload *w, int status) {
  char text[MPI_MAX_ERROR_STRING];
  int length;
  if (status == MPI_SUCCESS) return;
  MPI_Error_string(status, text, &length);
  workload_fail(w, file, text);
}

/* The rows of this rank, all columns of them, column by column. */
static uint64_t *local_part(int64_t first, int64_t mine) {
  uint64_t *part = malloc((size_t)(mine * columns) * 8);
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t r = 0; r < mine; ++r)
      part[c * mine + r] = workload_word(4, (uint64_t)(c * rows + first + r));
  return part;
}

static void write_pieces(struct workload *w, MPI_File f, const uint64_t *part, int64_t first,
                         int64_t mine) {
  for (int64_t c = 0; c < columns; ++c) {
    const double begun = workload_clock();
    need(w, MPI_File_write_at(f, (MPI_Offset)(c * rows + first) * 8, part + c * mine, (int)mine,
                              MPI_DOUBLE, MPI_STATUS_IGNORE));
    w->io_wait_s += workload_clock() - begun;
    w->requests++;
  }
}

static void write_by_view(struct workload *w, MPI_File f, const uint64_t *part, int64_t first,
                          int64_t mine, int together) {
  MPI_Datatype pieces;
  const int sizes[2] = {(int)rows, (int)columns}, subsizes[2] = {(int)mine, (int)columns},
            starts[2] = {(int)first, 0};
  need(w, MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_FORTRAN, MPI_DOUBLE,
                                   &pieces));
  need(w, MPI_Type_commit(&pieces));
  const double begun = workload_clock();
  need(w, MPI_File_set_view(f, 0, MPI_DOUBLE, pieces, "native", MPI_INFO_NULL));
  if (together) {
    need(w, MPI_File_write_all(f, part, (int)(mine * columns), MPI_DOUBLE, MPI_STATUS_IGNORE));
  } else {
    need(w, MPI_File_write(f, part, (int)(mine * columns), MPI_DOUBLE, MPI_STATUS_IGNORE));
  }
  w->io_wait_s += workload_clock() - begun;
  w->requests++;
  need(w, MPI_Type_free(&pieces));
}

static void write_matrix(struct workload *w, const uint64_t *part, int64_t first, int64_t mine) {
  MPI_File f;
  double begun = workload_clock();
  need(w,
       MPI_File_open(MPI_COMM_WORLD, file, MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &f));
  w->io_wait_s += workload_clock() - begun;
  MPI_File_set_errhandler(f, MPI_ERRORS_RETURN);
  if (strcmp(mode, "noview") == 0) {
    write_pieces(w, f, part, first, mine);
  } else {
    write_by_view(w, f, part, first, mine, mode[0] == 'c');
  }
  w->bytes += (uint64_t)(mine * columns) * 8;
  begun = workload_clock();
  need(w, MPI_File_close(&f));
  w->io_wait_s += workload_clock() - begun;
}

static void read_back(struct workload *w) {
  MPI_File f;
  MPI_Offset size;
  need(w, MPI_File_open(MPI_COMM_SELF, file, MPI_MODE_RDONLY, MPI_INFO_NULL, &f));
  need(w, MPI_File_get_size(f, &size));
  if (size != rows * columns * 8) workload_fail(w, file, "has not the size of the matrix");
  uint64_t *column = malloc((size_t)rows * 8);
  for (int64_t c = workload_first(columns, w->rank, w->ranks);
       c < workload_first(columns, w->rank + 1, w->ranks); ++c) {
    const double begun = workload_clock();
    need(w, MPI_File_read_at(f, (MPI_Offset)(c * rows) * 8, column, (int)rows, MPI_DOUBLE,
                             MPI_STATUS_IGNORE));
    w->io_wait_s += workload_clock() - begun;
    w->requests++, w->bytes += (uint64_t)rows * 8;
    for (int64_t r = 0; r < rows; ++r)
      w->wrong += column[r] != workload_word(4, (uint64_t)(c * rows + r));
  }
  free(column);
  need(w, MPI_File_close(&f));
}

int main(int argc, char **argv) {
  struct workload w;
  workload_begin(&w, "matrix", &argc, &argv, options);
  if (strcmp(mode, "noview") != 0 && strcmp(mode, "view") != 0 && strcmp(mode, "collective") != 0) {
    workload_fail(&w, mode, "--mode is noview, view or collective");
  }
  if (rows < w.ranks || columns < 1 || rows * columns / w.ranks >= INT32_MAX) {
    workload_fail(
        &w, file,
        "--rows must be at least the number of ranks, and a rank's part below 2^31 elements");
  }
  MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
  const int64_t first = workload_first(rows, w.rank, w.ranks),
                mine = workload_first(rows, w.rank + 1, w.ranks) - first;
  uint64_t *part = verify ? NULL : local_part(first, mine);
  workload_start(&w);
  if (verify) {
    read_back(&w);
  } else {
    write_matrix(&w, part, first, mine);
  }
  workload_stop(&w);
  free(part);
  return workload_end(&w);
}
