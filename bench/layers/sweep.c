/* SPDX-License-Identifier: Apache-2.0
 * Several ranks at one file, each a process that a launcher's variables describe; no MPI, so that
 * any number starts at once:
 *
 *   sweep FILE read|write PATTERN PIECE COUNT RANKS
 *
 * COUNT pieces of PIECE bytes by each rank. PATTERN: contiguous (each rank its own part),
 * interleaved (piece by piece in turn), strided (its own part, one piece of four), modulo (at equal
 * distances, on from the file's beginning behind its end), random. Prints `sweep: calls=N bytes=N
 * seconds=S`, from the time when all ranks are ready until all have closed the file. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"

enum { kReady = 60, kGo = 61, kGap = 4, kFactor = 1000003 };

struct plan {
  const char *file, *pattern;
  int writes;
  uint64_t piece, count, rank, ranks;
};

static uint64_t mixed(uint64_t n) {
  n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9u + 0x9e3779b97f4a7c15u;
  n = (n ^ n >> 27) * 0x94d049bb133111ebu;
  return n ^ n >> 31;
}

static uint64_t offset_of(const struct plan *p, uint64_t i) {
  const uint64_t own = p->rank * p->count + i, all = p->count * p->ranks;
  if (strcmp(p->pattern, "interleaved") == 0) return (i * p->ranks + p->rank) * p->piece;
  if (strcmp(p->pattern, "strided") == 0) return own * kGap * p->piece;
  if (strcmp(p->pattern, "modulo") == 0)
    return own * kFactor % all * p->piece; /* all is no multiple of the prime */
  if (strcmp(p->pattern, "random") == 0) return mixed(own) % all * p->piece;
  return own * p->piece;
}

static void move(const struct plan *p) {
  unsigned char *buffer = malloc(p->piece);
  const int fd = open(p->file, p->writes ? O_WRONLY | O_CREAT : O_RDONLY, 0644);
  need(buffer != NULL && fd >= 0, p->file);
  for (uint64_t i = 0; i < p->count; ++i) {
    const uint64_t at = offset_of(p, i);
    memset(buffer, (int)(at / p->piece * 7 + 1), p->writes ? p->piece : 0);
    const ssize_t moved = p->writes ? pwrite(fd, buffer, p->piece, (off_t)at)
                                    : pread(fd, buffer, p->piece, (off_t)at);
    need(moved == (ssize_t)p->piece, p->file);
  }
  need(close(fd) == 0, p->file);
}

static void set_number(const char *name, uint64_t value) {
  char text[32];
  snprintf(text, sizeof text, "%llu", (unsigned long long)value);
  setenv(name, text, 1);
}

/* A program of its own for each rank, as a launcher starts it. */
static void start(char **argv, uint64_t rank, uint64_t ranks) {
  const pid_t child = fork();
  need(child >= 0, "fork");
  if (child != 0) return;
  set_number("OMPI_COMM_WORLD_RANK", rank);
  set_number("OMPI_COMM_WORLD_LOCAL_RANK", rank);
  set_number("OMPI_COMM_WORLD_SIZE", ranks);
  set_number("OMPI_COMM_WORLD_LOCAL_SIZE", ranks);
  set_number("SWEEP_RANK", rank);
  execv("/proc/self/exe", argv);
  _exit(127);
}

static int run_all(char **argv, uint64_t ranks) {
  int ready[2], go[2], status = 0, failed = 0;
  char byte;
  need(pipe(ready) == 0 && pipe(go) == 0, "pipe");
  need(dup2(ready[1], kReady) == kReady && dup2(go[0], kGo) == kGo, "dup2");
  close(ready[1]);
  close(go[0]);
  fcntl(ready[0], F_SETFD, FD_CLOEXEC);
  fcntl(go[1], F_SETFD, FD_CLOEXEC);
  for (uint64_t rank = 0; rank < ranks; ++rank) start(argv, rank, ranks);
  close(kReady);
  close(kGo);
  for (uint64_t rank = 0; rank < ranks; ++rank)
    need(read(ready[0], &byte, 1) == 1, "a rank did not start");
  const double begun = now_s();
  close(go[1]);
  for (uint64_t rank = 0; rank < ranks; ++rank) {
    need(wait(&status) > 0, "wait");
    failed |= !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  }
  const double seconds = now_s() - begun;
  const uint64_t calls = number(argv[5]) * ranks;
  printf("sweep: calls=%llu bytes=%llu seconds=%.9f\n", (unsigned long long)calls,
         (unsigned long long)(calls * number(argv[4])), seconds);
  return failed;
}

int main(int argc, char **argv) {
  if (argc != 7) {
    fprintf(stderr,
            "usage: sweep FILE read|write contiguous|interleaved|strided|modulo|random PIECE COUNT "
            "RANKS\n");
    return 2;
  }
  const char *rank = getenv("SWEEP_RANK");
  if (rank == NULL) return run_all(argv, number(argv[6]));
  const struct plan p = {argv[1],         argv[3],         strcmp(argv[2], "write") == 0,
                         number(argv[4]), number(argv[5]), number(rank),
                         number(argv[6])};
  char byte = 0;
  need(write(kReady, &byte, 1) == 1, "ready");
  close(kReady);
  need(read(kGo, &byte, 1) == 0, "go");
  close(kGo);
  move(&p);
  return 0;
}
