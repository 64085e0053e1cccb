/* SPDX-License-Identifier: Apache-2.0
 * All ranks read overlapping sections of one file by POSIX calls, as a hydrodynamics code restarts
 * from planes of a grid.
 *
 * The file: a header of 92 bytes, then `variables` fields of `planes` planes of nx * ny doubles. A
 * rank owns a block of planes and reads `ghost` planes of its neighbours on both sides as well;
 * each plane is one request, which begins at no sector boundary and is no multiple of a sector.
 * --setup writes the file, in large pieces. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workload.h"

enum { kHeaderBytes = 92, kPieceBytes = 1 << 20 };

static const char *file = "sections.dat", *call = "lseek";
static int64_t nx = 84, ny = 84, planes = 512, variables = 4, ghost = 16, passes = 1;
static double compute_s = 0;
static int setup = 0;

static const struct workload_option options[] = {
    {"file", 's', &file, "the file (sections.dat)"},
    {"setup", 'f', &setup, "write the file and end"},
    {"nx", 'i', &nx, "doubles in a row of a plane (84)"},
    {"ny", 'i', &ny, "rows of a plane (84)"},
    {"planes", 'i', &planes, "planes of a variable (512)"},
    {"variables", 'i', &variables, "variables (4)"},
    {"ghost", 'i', &ghost, "planes of each neighbour that a rank reads (16)"},
    {"passes", 'i', &passes, "times that everything is read (1)"},
    {"call", 's', &call, "lseek: lseek and read; pread (lseek)"},
    {"compute", 'd', &compute_s, "seconds of computing between the variables, in all (0)"},
    {0}};

static int64_t plane_words(void) { return nx * ny; }

static void need(const struct workload *w, int ok) {
  if (!ok) workload_fail(w, file, strerror(errno));
}

/* Each rank writes the bytes of its share of the file; words are cut anywhere. */
static void write_file(struct workload *w) {
  const int64_t total = kHeaderBytes + 8 * variables * planes * plane_words();
  const int fd = open(file, O_WRONLY | O_CREAT, 0644);
  need(w, fd >= 0);
  unsigned char *piece = malloc(kPieceBytes);
  const int64_t pieces = (total + kPieceBytes - 1) / kPieceBytes;
  for (int64_t p = workload_first(pieces, w->rank, w->ranks);
       p < workload_first(pieces, w->rank + 1, w->ranks); ++p) {
    const int64_t at = p * kPieceBytes,
                  length = total - at < kPieceBytes ? total - at : kPieceBytes;
    for (int64_t i = 0; i < length; ++i) {
      const int64_t byte = at + i - kHeaderBytes;
      const uint64_t word = byte < 0 ? 0x4F565249u : workload_word(2, (uint64_t)byte / 8);
      piece[i] = (unsigned char)(word >> 8 * ((uint64_t)byte % 8));
    }
    const double begun = workload_clock();
    need(w, pwrite(fd, piece, (size_t)length, at) == length);
    w->io_wait_s += workload_clock() - begun;
    w->requests++, w->bytes += (uint64_t)length;
  }
  need(w, close(fd) == 0);
  free(piece);
}

static void read_plane(struct workload *w, int fd, uint64_t *plane, int64_t number) {
  const size_t length = (size_t)plane_words() * 8;
  const off_t at = kHeaderBytes + (off_t)number * (off_t)length;
  const double begun = workload_clock();
  ssize_t got;
  if (call[0] == 'p') {
    got = pread(fd, plane, length, at);
  } else {
    need(w, lseek(fd, at, SEEK_SET) == at);
    got = read(fd, plane, length);
  }
  w->io_wait_s += workload_clock() - begun;
  if (got >= 0 && (size_t)got != length)
    workload_fail(w, file, "shorter than --planes and --variables say");
  need(w, got >= 0);
  w->requests++, w->bytes += length;
  for (int64_t i = 0; i < plane_words(); ++i)
    w->wrong += plane[i] != workload_word(2, (uint64_t)(number * plane_words() + i));
}

/* A smoothing of the plane that was read last, for so many seconds. */
static void compute(double *plane, double seconds) {
  const double end = workload_clock() + seconds;
  while (workload_clock() < end)
    for (int64_t i = 1; i + 1 < plane_words(); ++i)
      plane[i] = 0.25 * plane[i - 1] + 0.5 * plane[i] + 0.25 * plane[i + 1];
}

static void read_sections(struct workload *w) {
  double begun = workload_clock();
  const int fd = open(file, O_RDONLY);
  w->io_wait_s += workload_clock() - begun;
  need(w, fd >= 0);
  uint64_t *plane = malloc((size_t)plane_words() * 8);
  double *field = calloc((size_t)plane_words(), 8);
  int64_t first = workload_first(planes, w->rank, w->ranks) - ghost,
          last = workload_first(planes, w->rank + 1, w->ranks) + ghost;
  first = first < 0 ? 0 : first, last = last > planes ? planes : last;
  for (int64_t pass = 0; pass < passes; ++pass) {
    for (int64_t v = 0; v < variables; ++v) {
      for (int64_t z = first; z < last; ++z) read_plane(w, fd, plane, v * planes + z);
      compute(field, compute_s / (double)(passes * variables));
    }
  }
  begun = workload_clock();
  need(w, close(fd) == 0);
  w->io_wait_s += workload_clock() - begun;
  free(plane), free(field);
}

int main(int argc, char **argv) {
  struct workload w;
  workload_begin(&w, "overlap", &argc, &argv, options);
  if (strcmp(call, "lseek") != 0 && strcmp(call, "pread") != 0)
    workload_fail(&w, call, "--call is lseek or pread");
  if (nx < 2 || ny < 1 || planes < w.ranks || variables < 1 || ghost < 0 || passes < 1) {
    workload_fail(&w, file, "sizes must be positive and --planes at least the number of ranks");
  }
  workload_start(&w);
  if (setup) {
    write_file(&w);
  } else {
    read_sections(&w);
  }
  workload_stop(&w);
  return workload_end(&w);
}
