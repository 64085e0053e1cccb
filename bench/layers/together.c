/* SPDX-License-Identifier: Apache-2.0
 * The programs of several ranks whose time the layers' bench takes:
 *
 *   together read FILE BYTES PIECE       every rank reads all of the file, PIECE bytes with each
 *                                        call
 *   together write FILE COUNT PIECE      the ranks write interleaved pieces into one file, COUNT
 *                                        each
 *
 * Prints `together: ranks=N calls=N bytes=N seconds=S`, from one barrier to the other, opening and
 * closing included. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "measure.h"

static int rank, ranks;

static uint64_t read_all(const char *file, uint64_t bytes, uint64_t piece) {
  unsigned char *buffer = malloc(piece);
  const int fd = open(file, O_RDONLY);
  need(fd >= 0 && buffer != NULL, file);
  for (uint64_t at = 0; at < bytes; at += piece) {
    const uint64_t length = bytes - at < piece ? bytes - at : piece;
    need(read(fd, buffer, length) == (ssize_t)length, file);
    /* Ends alone: comparing all of it would be most of what is timed. */
    const unsigned char *expected = contents_at(at);
    need(memcmp(buffer, expected, 8) == 0 &&
             memcmp(buffer + length - 8, expected + length - 8, 8) == 0,
         "wrong bytes");
  }
  need(close(fd) == 0, file);
  free(buffer);
  return (bytes + piece - 1) / piece;
}

static uint64_t write_interleaved(const char *file, uint64_t count, uint64_t piece) {
  const int fd = open(file, O_WRONLY | O_CREAT, 0644);
  need(fd >= 0, file);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t at = (i * (uint64_t)ranks + (uint64_t)rank) * piece;
    need(pwrite(fd, contents_at(at), piece, (off_t)at) == (ssize_t)piece, file);
  }
  need(close(fd) == 0, file);
  return count;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int reading = argc == 5 && strcmp(argv[1], "read") == 0;
  if (!reading && (argc != 5 || strcmp(argv[1], "write") != 0)) {
    if (rank == 0)
      fprintf(stderr, "usage: together read FILE BYTES PIECE | together write FILE COUNT PIECE\n");
    MPI_Finalize();
    return 2;
  }
  const uint64_t first = number(argv[3]), piece = number(argv[4]);
  contents_at(0);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begun = now_s();
  const uint64_t calls =
      reading ? read_all(argv[2], first, piece) : write_interleaved(argv[2], first, piece);
  MPI_Barrier(MPI_COMM_WORLD);
  const double seconds = now_s() - begun;
  const uint64_t bytes = reading ? first : first * piece;
  if (rank == 0) {
    printf("together: ranks=%d calls=%llu bytes=%llu seconds=%.9f\n", ranks,
           (unsigned long long)(calls * (uint64_t)ranks),
           (unsigned long long)(bytes * (uint64_t)ranks), seconds);
  }
  MPI_Finalize();
  return 0;
}
