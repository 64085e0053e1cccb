// SPDX-License-Identifier: Apache-2.0
// The loops whose cost per call is measured, and the floor they are held against.
//
//   loops LOOP COUNT DIRECTORY     prints: LOOP COUNT wall_ns cpu_ns      (of the loop alone; cpu:
//   user + system, all threads)
//
// Which tool watches is decided outside, by the environment. The program knows nothing of weir.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

enum { kRingBytes = 1 << 20, kPiece = 4096 };

struct span {
  uint64_t wall, cpu;
};

static const char *data_path;  // DIRECTORY/data
static char buffer[kPiece];

static uint64_t now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct span begin(void) {
  return (struct span){now(CLOCK_MONOTONIC), now(CLOCK_PROCESS_CPUTIME_ID)};
}

static struct span since(struct span s) {
  const uint64_t cpu = now(CLOCK_PROCESS_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);
  return (struct span){wall - s.wall, cpu - s.cpu};
}

static void need(int ok, const char *what) {
  if (ok) return;
  perror(what);
  exit(1);
}

// A file of so many zeros, open for reading and writing.
static int data_file(uint64_t bytes) {
  const int fd = open(data_path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  need(fd >= 0, data_path);
  need(ftruncate(fd, (off_t)bytes) == 0, "ftruncate");
  return fd;
}

static uint64_t ticks(void) {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return now(CLOCK_MONOTONIC);
#endif
}

// What no record can be had for less: two readings of the trace clock and 32 bytes into a mapped
// file that is in the cache.
static struct span loop_floor(uint64_t count) {
  const int fd = data_file(kRingBytes);
  uint64_t *ring = mmap(NULL, kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  need(ring != MAP_FAILED, "mmap");
  memset(ring, 1, kRingBytes);
  const struct span s = begin();
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t start = ticks();
    __asm__ volatile("" ::: "memory");
    const uint64_t end = ticks();
    uint64_t *record = ring + i * 4 % (kRingBytes / 8);
    record[0] = start;
    record[1] = end - start;
    record[2] = i;
    __atomic_store_n(&record[3], count, __ATOMIC_RELEASE);
  }
  return since(s);
}

static struct span loop_empty(uint64_t count) {
  const struct span s = begin();
  for (uint64_t i = 0; i < count; ++i) __asm__ volatile("" ::: "memory");
  return since(s);
}

static struct span loop_fread(uint64_t count) {
  close(data_file(count));
  FILE *f = fopen(data_path, "r");
  need(f != NULL, data_path);
  const struct span s = begin();
  for (uint64_t i = 0; i < count; ++i) need(fread(buffer, 1, 1, f) == 1, "fread");
  const struct span took = since(s);
  fclose(f);
  return took;
}

static struct span loop_fwrite(uint64_t count) {
  FILE *f = fopen(data_path, "w");
  need(f != NULL, data_path);
  const struct span s = begin();
  for (uint64_t i = 0; i < count; ++i) need(fwrite(buffer, 8, 1, f) == 1, "fwrite");
  const struct span took = since(s);
  fclose(f);
  return took;
}

static struct span loop_read(uint64_t count) {
  const int fd = data_file(count);
  const struct span s = begin();
  for (uint64_t i = 0; i < count; ++i) need(read(fd, buffer, 1) == 1, "read");
  const struct span took = since(s);
  close(fd);
  return took;
}

// Over one megabyte again and again, so that the file system allocates nothing.
static struct span loop_pwrite(uint64_t count) {
  const int fd = data_file(1 << 20);
  for (int i = 0; i < 256; ++i)
    need(pwrite(fd, buffer, kPiece, (off_t)i * kPiece) == kPiece, "pwrite");
  const struct span s = begin();
  for (uint64_t i = 0; i < count; ++i)
    need(pwrite(fd, buffer, kPiece, (off_t)(i % 256) * kPiece) == kPiece, "pwrite");
  const struct span took = since(s);
  close(fd);
  return took;
}

static struct span loop_open(uint64_t count) {
  close(data_file(kPiece));
  const struct span s = begin();
  for (uint64_t i = 0; i < count; ++i) {
    const int fd = open(data_path, O_RDONLY);
    need(fd >= 0, data_path);
    close(fd);
  }
  return since(s);
}

static const struct {
  const char *name;
  struct span (*run)(uint64_t);
} loops[] = {{"empty", loop_empty},   {"floor", loop_floor}, {"fread", loop_fread},
             {"fwrite", loop_fwrite}, {"read", loop_read},   {"pwrite", loop_pwrite},
             {"open", loop_open}};

int main(int argc, char **argv) {
  static char path[4096];
  if (argc == 1) return 0;  // start and finish, nothing between
  if (argc != 4) return fprintf(stderr, "usage: loops LOOP COUNT DIRECTORY\n"), 2;
  snprintf(path, sizeof path, "%s/data", argv[3]);
  data_path = path;
  const uint64_t count = strtoull(argv[2], NULL, 10);
  for (size_t i = 0; i < sizeof loops / sizeof *loops; ++i) {
    if (strcmp(argv[1], loops[i].name) != 0) continue;
    const struct span took = loops[i].run(count);
    printf("%s %llu %llu %llu\n", argv[1], (unsigned long long)count, (unsigned long long)took.wall,
           (unsigned long long)took.cpu);
    return 0;
  }
  return fprintf(stderr, "no loop of that name: %s\n", argv[1]), 2;
}
