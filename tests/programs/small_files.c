// SPDX-License-Identifier: Apache-2.0
// Many small files in one directory: small_files create|read DIRECTORY FILES BYTES [SHIFT].
// Each rank makes, or reads back and compares, every RANKSth file; with SHIFT those of the rank so
// many further on. Rank 0 prints how long all of them took between two barriers, and the CPU time
// of all together until then.
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what, const char *path) {
  fprintf(stderr, "small_files: %s %s: %s\n", what, path, strerror(errno));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// All contents differ by their first bytes; the rest costs nothing, so that files are measured.
static void number(char *to, size_t bytes, long file) {
  memcpy(to, &file, bytes < sizeof file ? bytes : sizeof file);
}

static double cpu_seconds(void) {
  struct timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

static void create_file(const char *path, const char *contents, size_t bytes) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd < 0) fail("cannot create", path);
  if (write(fd, contents, bytes) != (ssize_t)bytes) fail("cannot write", path);
  if (close(fd) != 0) fail("cannot close", path);
}

static void read_file(const char *path, const char *expected, char *room, size_t bytes) {
  const int fd = open(path, O_RDONLY);
  if (fd < 0) fail("cannot open", path);
  if (read(fd, room, bytes) != (ssize_t)bytes) fail("cannot read", path);
  if (memcmp(room, expected, bytes) != 0) fail("contents differ:", path);
  if (close(fd) != 0) fail("cannot close", path);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 5) {
    fprintf(stderr, "usage: small_files create|read DIRECTORY FILES BYTES [SHIFT]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int creates = strcmp(argv[1], "create") == 0;
  const long files = atol(argv[3]), shift = argc > 5 ? atol(argv[5]) : 0;
  const size_t bytes = (size_t)atol(argv[4]);
  char *contents = malloc(bytes), *room = malloc(bytes), path[4096];
  if (contents == NULL || room == NULL) fail("no memory for", argv[2]);
  for (size_t i = 0; i < bytes; ++i) contents[i] = (char)(i % 251);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime(), begin_cpu = cpu_seconds();
  for (long i = (rank + shift) % ranks; i < files; i += ranks) {
    snprintf(path, sizeof path, "%s/file.%06ld", argv[2], i);
    number(contents, bytes, i);
    if (creates) create_file(path, contents, bytes);
    else read_file(path, contents, room, bytes);
  }
  const double cpu = cpu_seconds() - begin_cpu;
  double all_cpu = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  const double end = MPI_Wtime();
  MPI_Reduce(&cpu, &all_cpu, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("small_files: seconds=%.6f cpu=%.6f\n", end - begin, all_cpu);
  free(contents);
  free(room);
  MPI_Finalize();
  return 0;
}
