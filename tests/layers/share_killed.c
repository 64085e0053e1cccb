// SPDX-License-Identifier: Apache-2.0
// share_killed FILE PAGE RANKS PIECE PIECES VICTIM: ranks without MPI write pieces of one file in
// turn, and read each other's. The page says, for each rank, its pid, how many pieces were accepted
// and whether it came to its end. The victim has none: it waits to be killed.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct entry {
  volatile long pid, accepted, done, unused;
};
static unsigned char byte_at(long offset) {
  return (unsigned char)(offset * 7 + offset / 251 + offset / 65537);
}

static int rank(const char* path, struct entry* all, int me, int ranks, long piece, long pieces,
                int is_victim) {
  all[me].pid = getpid();
  const int fd = open(path, O_RDWR | O_CREAT, 0644);
  unsigned char* data = malloc(piece);
  for (long i = 0; i < pieces; ++i) {
    const long at = (i * ranks + me) * piece;
    for (long k = 0; k < piece; ++k) data[k] = byte_at(at + k);
    if (pwrite(fd, data, piece, at) != piece) return 4;
    all[me].accepted = i + 1;
    const int other = (me + 1) % ranks;
    const long theirs = all[other].accepted - 1;
    if (theirs < 0) continue;
    const long there = (theirs * ranks + other) * piece;
    if (pread(fd, data, piece, there) != piece) return 5;
    for (long k = 0; k < piece; ++k) {
      if (data[k] != byte_at(there + k)) return 6;
    }
  }
  while (is_victim) pause();
  if (close(fd) != 0) return 7;
  all[me].done = 1;
  return 0;
}

int main(int argc, char** argv) {
  const int ranks = atoi(argv[3]);
  const int page = open(argv[2], O_RDWR | O_CREAT, 0644);
  if (argc != 7 || ftruncate(page, 4096) != 0) return 2;
  struct entry* all = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
  for (int i = 0; i < ranks; ++i) {
    if (fork() == 0)
      _exit(rank(argv[1], all, i, ranks, atol(argv[4]), atol(argv[5]), i == atoi(argv[6])));
  }
  int worst = 0, status;
  while (wait(&status) > 0) {
    if (WIFEXITED(status) && WEXITSTATUS(status) > worst) worst = WEXITSTATUS(status);
  }
  return worst;
}
