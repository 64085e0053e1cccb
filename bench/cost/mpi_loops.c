// SPDX-License-Identifier: Apache-2.0
// Loops over calls of MPI by one rank, which has nobody to wait for: what is left is the call, and
// what a tool adds to it.
//
//   mpi-NAME LOOP COUNT DIRECTORY     (the directory is for programs that need one: see loops.c)
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void barrier(void) { MPI_Barrier(MPI_COMM_SELF); }

static void allreduce(void) {
  int one = 1, sum;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
}

static void exchange(void) {
  int out = 1, in;
  MPI_Request requests[2];
  MPI_Irecv(&in, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &requests[0]);
  MPI_Isend(&out, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

// MPI-IO: a request of its own each time.
static const char *directory;
static void write_at(void) {
  static MPI_File file;
  static long long sum, at;
  if (sum++ == 0) {
    char path[4096];
    snprintf(path, sizeof path, "%s/of_mpi", directory);
    MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  }
  MPI_File_write_at(file, at, &sum, 8, MPI_BYTE, MPI_STATUS_IGNORE);
  at = (at + 8) % (1 << 20);
}

static const struct {
  const char *name;
  void (*call)(void);
} loops[] = {
    {"barrier", barrier}, {"allreduce", allreduce}, {"exchange", exchange}, {"write_at", write_at}};

int main(int argc, char **argv) {
  if (argc != 4) return fprintf(stderr, "usage: mpi-NAME LOOP COUNT DIRECTORY\n"), 2;
  const unsigned long long count = strtoull(argv[2], NULL, 10);
  directory = argv[3];
  MPI_Init(&argc, &argv);
  for (size_t i = 0; i < sizeof loops / sizeof *loops; ++i) {
    if (strcmp(argv[1], loops[i].name) != 0) continue;
    for (unsigned long long n = 0; n < count; ++n) loops[i].call();
    return MPI_Finalize();
  }
  MPI_Finalize();
  return fprintf(stderr, "no loop of that name: %s\n", argv[1]), 2;
}
