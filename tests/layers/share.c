// SPDX-License-Identifier: Apache-2.0
// Ranks that share one file, each in a known way; every byte that is read is compared. share WHAT
// FILE NUMBER...
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int rank, ranks;
static unsigned char byte_at(long offset) {
  return (unsigned char)(offset * 7 + offset / 251 + offset / 65537);
}
static void fail(const char* what, long where) {
  fprintf(stderr, "rank %d: %s at %ld: %s\n", rank, what, where, strerror(errno));
  MPI_Abort(MPI_COMM_WORLD, 3);
}
static void check(const unsigned char* data, long offset, long n, int plus) {
  for (long i = 0; i < n; ++i) {
    if (data[i] != (unsigned char)(byte_at(offset + i) + plus)) fail("another byte", offset + i);
  }
}
static void fill(unsigned char* data, long offset, long n, int plus) {
  for (long i = 0; i < n; ++i) data[i] = (unsigned char)(byte_at(offset + i) + plus);
}
static int open_file(const char* path, int flags) {
  const int fd = open(path, flags, 0644);
  if (fd < 0) fail(path, 0);
  return fd;
}

// All ranks read the whole file by small requests; after so many of them, if not 0, they wait for
// each other.
static void read_all(const char* path, long request, long together) {
  const int fd = open_file(path, O_RDONLY);
  unsigned char* data = malloc(request);
  MPI_Barrier(MPI_COMM_WORLD);
  long at = 0, n, requests = 0;
  while ((n = read(fd, data, request)) > 0) {
    check(data, at, n, 0);
    at += n;
    if (together != 0 && ++requests % together == 0) MPI_Barrier(MPI_COMM_WORLD);
  }
  if (n < 0) fail("read", at);
  struct stat about;
  fstat(fd, &about);
  if (at != about.st_size) fail("another size", at);
  close(fd);
}

// Pieces of all ranks in turn, one after another in the file.
static void interleave(const char* path, long piece, long total) {
  const int fd = open_file(path, O_RDWR | O_CREAT);
  unsigned char* data = malloc(piece);
  MPI_Barrier(MPI_COMM_WORLD);
  for (long at = rank * piece; at < total; at += ranks * piece) {
    const long n = at + piece < total ? piece : total - at;
    fill(data, at, n, 0);
    if (pwrite(fd, data, n, at) != n) fail("pwrite", at);
  }
  if (close(fd) != 0) fail("close", 0);
}

// In each round one rank writes, all meet, and all read it; the file stays open.
static void in_turn(const char* path, long rounds, long n) {
  const int fd = open_file(path, O_RDWR | O_CREAT);
  unsigned char* data = malloc(n);
  for (long round = 0; round < rounds; ++round) {
    const long at = round * 37 % 100 * (n / 3);
    if (round % ranks == rank) {
      fill(data, at, n, (int)round);
      if (pwrite(fd, data, n, at) != n) fail("pwrite", at);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    memset(data, 0, n);
    if (pread(fd, data, n, at) != n) fail("pread", at);
    check(data, at, n, (int)round);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (close(fd) != 0) fail("close", 0);
}

// Writes until somebody is notified of an error; each rank says what it saw.
static void until_error(const char* path, long piece, long total) {
  const int fd = open_file(path, O_RDWR | O_CREAT);
  unsigned char* data = malloc(piece);
  int seen = 0;
  for (long at = rank * piece; at < total && seen == 0; at += ranks * piece) {
    fill(data, at, piece, 0);
    if (pwrite(fd, data, piece, at) != piece) seen = errno;
  }
  if (seen == 0 && fsync(fd) != 0) seen = errno;
  if (close(fd) != 0 && seen == 0) seen = errno;
  int most = 0;
  MPI_Allreduce(&seen, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0) printf("error %d\n", most);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const long first = atol(argv[3]), second = argc > 4 ? atol(argv[4]) : 0;
  if (strcmp(argv[1], "read") == 0) read_all(argv[2], first, second);
  else if (strcmp(argv[1], "interleave") == 0) interleave(argv[2], first, second);
  else if (strcmp(argv[1], "in-turn") == 0) in_turn(argv[2], first, second);
  else if (strcmp(argv[1], "until-error") == 0) until_error(argv[2], first, second);
  else return 2;
  MPI_Finalize();
  return 0;
}
