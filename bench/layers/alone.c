/* SPDX-License-Identifier: Apache-2.0
 * The programs of one rank whose time the layers' bench takes:
 *
 *   alone fill FILE BYTES PIECE STRIDE       write PIECE bytes at every STRIDE (what is to be
 *       read)
 *   alone check FILE BYTES                   compare all of the file
 *   alone read FILE PIECE COUNT STRIDE TIMES open, COUNT reads of PIECE bytes, close; one every
 *       STRIDE bytes
 *   alone parallel FILE BYTES THREADS        reads of 4 MiB by so many threads: the limit
 *   alone fread FILE COUNT                   one byte with each call
 *   alone write FILE PIECE COUNT TIMES       open, COUNT writes, close
 *   alone dump FILE BYTES PIECE ROUNDS MS    writes of BYTES with MS of pause between, beside
 *       memcpy of the same
 *   alone append FILE COUNT                  open for appending, write one line, close
 *   alone stat FILE COUNT                    stat
 *   alone calls FILE COUNT                   reads of one byte at the end of a file: the call
 *       itself
 *
 * Prints `alone: calls=N bytes=N seconds=S ...`, of the quickest where something is done several
 * TIMES. The program knows nothing of weir. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "measure.h"

enum { kLimitPiece = 4 << 20, kBlocks = 50, kLineBytes = 96 };

static unsigned char *piece_buffer(uint64_t bytes) {
  unsigned char *buffer = NULL;
  errno = posix_memalign((void **)&buffer, 4096, bytes);
  need(errno == 0, "memory");
  memset(buffer, 1, bytes);
  return buffer;
}

static void print(uint64_t calls, uint64_t bytes, double seconds) {
  printf("alone: calls=%llu bytes=%llu seconds=%.9f", (unsigned long long)calls,
         (unsigned long long)bytes, seconds);
}

static void fill(char **a) {
  const uint64_t bytes = number(a[1]), piece = number(a[2]), stride = number(a[3]);
  const int fd = open(a[0], O_WRONLY | O_CREAT | O_TRUNC, 0644);
  need(fd >= 0, a[0]);
  for (uint64_t at = 0; at < bytes; at += stride) {
    const uint64_t length = bytes - at < piece ? bytes - at : piece;
    need(pwrite(fd, contents_at(at), length, (off_t)at) == (ssize_t)length, a[0]);
  }
  need(ftruncate(fd, (off_t)bytes) == 0 && close(fd) == 0, a[0]);
  print(0, bytes, 0);
}

static void check(char **a) {
  const uint64_t bytes = number(a[1]);
  const int fd = open(a[0], O_RDONLY);
  struct stat is;
  need(fd >= 0 && fstat(fd, &is) == 0, a[0]);
  if ((uint64_t)is.st_size != bytes) {
    fprintf(stderr, "%s: %lld bytes, expected %llu\n", a[0], (long long)is.st_size,
            (unsigned long long)bytes);
    exit(1);
  }
  unsigned char *buffer = piece_buffer(kLimitPiece);
  for (uint64_t at = 0; at < bytes; at += kLimitPiece) {
    const ssize_t got = pread(fd, buffer, kLimitPiece, (off_t)at);
    need(got > 0, a[0]);
    if (memcmp(buffer, contents_at(at), (size_t)got) != 0) {
      fprintf(stderr, "%s: wrong bytes between %llu and %llu\n", a[0], (unsigned long long)at,
              (unsigned long long)(at + kLimitPiece));
      exit(1);
    }
  }
  close(fd);
  print(0, bytes, 0);
}

/* Ends of each piece are compared: more would be time of ours. */
static void expect(const unsigned char *got, uint64_t at, uint64_t piece) {
  const unsigned char *expected = contents_at(at);
  const size_t last = piece < 8 ? 0 : piece - 8;
  if (memcmp(got, expected, piece < 8 ? piece : 8) == 0 &&
      memcmp(got + last, expected + last, piece - last) == 0)
    return;
  fprintf(stderr, "wrong bytes at %llu\n", (unsigned long long)at);
  exit(1);
}

static double read_once(const char *file, unsigned char *buffer, uint64_t piece, uint64_t count,
                        uint64_t stride) {
  const double begun = now_s();
  const int fd = open(file, O_RDONLY);
  need(fd >= 0, file);
  for (uint64_t i = 0; i < count; ++i) {
    if (stride != piece) need(lseek(fd, (off_t)(i * stride), SEEK_SET) >= 0, file);
    need(read(fd, buffer, piece) == (ssize_t)piece, file);
    expect(buffer, i * stride, piece);
  }
  need(close(fd) == 0, file);
  return now_s() - begun;
}

static void read_pieces(char **a) {
  const uint64_t piece = number(a[1]), count = number(a[2]), stride = number(a[3]),
                 times = number(a[4]);
  unsigned char *buffer = piece_buffer(piece);
  double best = 1e9;
  contents_at(0);
  for (uint64_t t = 0; t < times; ++t) {
    const double took = read_once(a[0], buffer, piece, count, stride);
    best = took < best ? took : best;
  }
  print(count, count * piece, best);
}

struct shared_file {
  const char *name;
  uint64_t bytes, next;
};

static void *read_share(void *argument) {
  struct shared_file *file = argument;
  unsigned char *buffer = piece_buffer(kLimitPiece);
  const int fd = open(file->name, O_RDONLY);
  need(fd >= 0, file->name);
  for (;;) {
    const uint64_t at = __atomic_fetch_add(&file->next, kLimitPiece, __ATOMIC_RELAXED);
    if (at >= file->bytes) break;
    need(pread(fd, buffer, kLimitPiece, (off_t)at) > 0, file->name);
    expect(buffer, at, 8);
  }
  close(fd);
  free(buffer);
  return NULL;
}

static void parallel(char **a) {
  struct shared_file file = {a[0], number(a[1]), 0};
  const uint64_t threads = number(a[2]);
  pthread_t thread[64];
  contents_at(0);
  const double begun = now_s();
  for (uint64_t t = 0; t < threads && t < 64; ++t)
    need((errno = pthread_create(&thread[t], NULL, read_share, &file)) == 0, "thread");
  for (uint64_t t = 0; t < threads && t < 64; ++t) pthread_join(thread[t], NULL);
  print(file.bytes / kLimitPiece, file.bytes, now_s() - begun);
}

static void fread_bytes(char **a) {
  const uint64_t count = number(a[1]);
  unsigned char byte = 0, sum = 0, expected = 0;
  for (uint64_t i = 0; i < count; i += 4096)
    for (uint64_t k = 0; k < 4096 && i + k < count; ++k)
      expected = (unsigned char)(expected + contents_at(i)[k]);
  FILE *f = fopen(a[0], "r");
  need(f != NULL, a[0]);
  const double begun = now_s();
  for (uint64_t i = 0; i < count; ++i) {
    if (fread(&byte, 1, 1, f) != 1) need(0, a[0]);
    sum = (unsigned char)(sum + byte);
  }
  print(count, count, now_s() - begun);
  need(fclose(f) == 0 && sum == expected, a[0]);
}

static double write_once(const char *file, uint64_t piece, uint64_t count) {
  const double begun = now_s();
  const int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  need(fd >= 0, file);
  for (uint64_t i = 0; i < count; ++i)
    need(write(fd, contents_at(i * piece), piece) == (ssize_t)piece, file);
  need(close(fd) == 0, file);
  return now_s() - begun;
}

static void write_pieces(char **a) {
  const uint64_t piece = number(a[1]), count = number(a[2]), times = number(a[3]);
  double best = 1e9;
  contents_at(0);
  for (uint64_t t = 0; t < times; ++t) {
    const double took = write_once(a[0], piece, count);
    best = took < best ? took : best;
  }
  print(count, count * piece, best);
}

static int ascending(const void *a, const void *b) {
  return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

/* The first round, in which memory is touched for the first time on both sides, does not count. */
static void dump(char **a) {
  const uint64_t bytes = number(a[1]), piece = number(a[2]), rounds = number(a[3]),
                 pause_ms = number(a[4]);
  double stall[64], copy[64];
  unsigned char *target = piece_buffer(bytes);
  const int fd = open(a[0], O_WRONLY | O_CREAT | O_TRUNC, 0644);
  need(fd >= 0 && rounds > 0 && rounds < 64, a[0]);
  for (uint64_t r = 0; r <= rounds; ++r) {
    double begun = now_s();
    for (uint64_t at = 0; at < bytes; at += piece) {
      memcpy(target + at, contents_at(r * bytes + at), piece);
      __asm__ volatile("" ::: "memory");
    }
    copy[r] = now_s() - begun;
    begun = now_s();
    for (uint64_t at = 0; at < bytes; at += piece)
      need(write(fd, contents_at(r * bytes + at), piece) == (ssize_t)piece, a[0]);
    stall[r] = now_s() - begun;
    usleep((useconds_t)(pause_ms * 1000));
  }
  need(close(fd) == 0, a[0]);
  qsort(stall + 1, rounds, sizeof *stall, ascending);
  qsort(copy + 1, rounds, sizeof *copy, ascending);
  print(rounds, (rounds + 1) * bytes, stall[1 + rounds / 2]);
  printf(" memcpy_s=%.9f", copy[1 + rounds / 2]);
}

static void append(char **a) {
  const uint64_t count = number(a[1]);
  contents_at(0);
  const double begun = now_s();
  for (uint64_t i = 0; i < count; ++i) {
    const int fd = open(a[0], O_WRONLY | O_CREAT | O_APPEND, 0644);
    need(fd >= 0, a[0]);
    need(write(fd, contents_at(i * kLineBytes), kLineBytes) == kLineBytes && close(fd) == 0, a[0]);
  }
  print(count, count * kLineBytes, now_s() - begun);
}

static void stat_storm(char **a) {
  const uint64_t count = number(a[1]);
  struct stat is;
  uint64_t sum = 0;
  const double begun = now_s();
  for (uint64_t i = 0; i < count; ++i) {
    need(stat(a[0], &is) == 0, a[0]);
    sum += (uint64_t)is.st_size;
  }
  print(count, sum, now_s() - begun);
}

/* The quickest of some blocks of calls: what others do on the machine only ever adds to it. */
static void calls(char **a) {
  const uint64_t count = number(a[1]) / kBlocks;
  unsigned char byte;
  double best = 1e9, total = 0;
  const int fd = open(a[0], O_RDONLY);
  need(fd >= 0 && lseek(fd, 0, SEEK_END) >= 0, a[0]);
  for (int block = 0; block < kBlocks; ++block) {
    const double begun = now_s();
    for (uint64_t i = 0; i < count; ++i) need(read(fd, &byte, 1) == 0, a[0]);
    const double took = now_s() - begun;
    best = took < best ? took : best;
    total += took;
  }
  close(fd);
  print(count * kBlocks, 0, total);
  printf(" best_ns=%.4f", 1e9 * best / (double)count);
}

static const struct {
  const char *name;
  int arguments;
  void (*run)(char **);
} programs[] = {{"fill", 4, fill},         {"check", 2, check},       {"read", 5, read_pieces},
                {"parallel", 3, parallel}, {"fread", 2, fread_bytes}, {"write", 4, write_pieces},
                {"dump", 5, dump},         {"append", 2, append},     {"stat", 2, stat_storm},
                {"calls", 2, calls}};

int main(int argc, char **argv) {
  for (size_t i = 0; i < sizeof programs / sizeof *programs; ++i) {
    if (argc < 3 || strcmp(argv[1], programs[i].name) != 0 || argc != programs[i].arguments + 2)
      continue;
    programs[i].run(argv + 2);
    printf("\n");
    return 0;
  }
  fprintf(stderr, "usage: alone PROGRAM FILE ARGUMENTS; the head of alone.c lists them\n");
  return 2;
}
