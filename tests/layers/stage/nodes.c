// SPDX-License-Identifier: Apache-2.0
// nodes VERSION BYTES: each rank writes rank<N>.dat; then it reads that of the next rank until it
// has this version, and prints how often it was not there, was older, or was not whole.
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void fill(char* to, size_t bytes, int rank, int version) {
  for (size_t i = 0; i < bytes; ++i) to[i] = (char)(rank * 31 + version * 7 + (int)(i % 101));
}

enum What { kThere, kNone, kOlder, kHalf };

static enum What look(const char* name, char* memory, const char* expected, const char* older,
                      size_t bytes) {
  const int fd = open(name, O_RDONLY);
  if (fd < 0) return kNone;
  const ssize_t n = read(fd, memory, bytes + 1);
  close(fd);
  if (n != (ssize_t)bytes) return kHalf;
  if (memcmp(memory, expected, bytes) == 0) return kThere;
  return memcmp(memory, older, bytes) == 0 ? kOlder : kHalf;
}

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int version = atoi(arguments[1]);
  const size_t bytes = (size_t)atol(arguments[2]);
  char* const own = malloc(bytes);
  char* const expected = malloc(bytes);
  char* const older = malloc(bytes);
  char* const memory = malloc(bytes + 1);
  const int next = (rank + 1) % ranks;
  char name[32];
  fill(own, bytes, rank, version);
  fill(expected, bytes, next, version);
  fill(older, bytes, next, version - 1);

  snprintf(name, sizeof name, "rank%d.dat", rank);
  MPI_Barrier(MPI_COMM_WORLD);
  const int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd < 0 || write(fd, own, bytes) != (ssize_t)bytes || close(fd) != 0)
    MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Barrier(MPI_COMM_WORLD);

  int seen[4] = {0, 0, 0, 0};
  snprintf(name, sizeof name, "rank%d.dat", next);
  for (int tries = 0; seen[kThere] == 0 && tries < 60000; ++tries) {
    ++seen[look(name, memory, expected, older, bytes)];
    if (seen[kThere] == 0) usleep(1000);
  }
  printf("rank %d: there %d none %d older %d half %d\n", rank, seen[kThere], seen[kNone] != 0,
         seen[kOlder] != 0, seen[kHalf]);
  MPI_Finalize();
  return 0;
}
