/* SPDX-License-Identifier: Apache-2.0
 * The experiment that all writers of `weir bench wrf` share: two domains, the same fields on each,
 * blocks of ranks, a history frame of every domain every few steps, computing between. A writer
 * decides how a frame gets into files; main.c runs and times it. */
#ifndef WEIR_BENCH_WRF_EXPERIMENT_H
#define WEIR_BENCH_WRF_EXPERIMENT_H

#include <mpi.h>
#include <stddef.h>

enum { DOMAINS = 2, FIELDS = 8, LEVELS = 28, MAX_FRAMES = 256, MAX_PATH = 1024 };

struct field {
  const char *name, *units;
  int levels;
};
extern const struct field kFields[FIELDS];

/* From the command line, `key=value`. */
struct options {
  double scale;    /* of the number of points; 1: 1770 x 1986 and 2974 x 3118 */
  long steps;      /* of the model */
  long every;      /* a frame at steps 0, every, 2 every, ... */
  long sleep_us;   /* of a step, or */
  long spin;       /* passes over a small array: a processor is busy */
  long lend;       /* libweir: fields are put from lent memory */
  long sync; /* for writers that have the option: each file is on the disk before it is done */
  long bare; /* back to back: every frame has the first one's data, and nothing is timed beside */
  long check; /* read back and compare instead of writing (libweir, adios2); 2: read (libweir) */
  const char *directory, *config, *adios2;
};

struct domain {
  long nx, ny;         /* of all ranks */
  long i0, ni, j0, nj; /* of this one */
};

struct run {
  struct options options;
  MPI_Comm model; /* of the ranks that compute */
  int rank, size, columns, rows;
  struct domain domains[DOMAINS];
  float *data[DOMAINS][FIELDS]; /* [levels][nj][ni] */
  double wait_s;   /* libweir: for a free buffer or group */
  double copies_s; /* in calls that take data, without opening and closing */
  double put_us[MAX_FRAMES * DOMAINS * FIELDS];
  long puts;
};

/* What a writer is; what it does not need is left out. `start` is called on all ranks of the world,
 * at once after MPI_Init, and gives the communicator of those that compute, without it the world's;
 * MPI_COMM_NULL where the rank has served, in which case all is written. `step`: the writer's calls
 * of a step, which writes when it is due; `write_domain`: for each domain when a frame is due. Each
 * is collective over the computing ranks. An error ends the program (fail()). */
struct writer {
  const char *name;
  void (*start)(const struct options *options, MPI_Comm *model);
  void (*define)(struct run *run);
  void (*step)(struct run *run, long step, int frame, int due);
  void (*write_domain)(struct run *run, int domain, int frame);
  void (*finish)(struct run *run);
};
extern const struct writer kWriter;

size_t local_count(const struct run *run, int domain, int field);
size_t local_bytes(const struct run *run);   /* of a frame of all domains, this rank's part */
double frame_bytes(const struct options *options); /* of all ranks */
void domain_sizes(const struct options *options, int domain, long *nx, long *ny);
/* The part [first, first + count) of n that is `part` of `parts`. */
void share(long n, int parts, int part, long *first, long *count);

/* A number that tells field, place, level and frame apart, exact in a float. */
static inline float value_at(int domain, int field, long level, long j, long i, int frame) {
  const unsigned row = (unsigned)(j * 4099 + level * 131 + field * 17 + frame * 7 + domain);
  return (float)((row + (unsigned)i * 31u) & 0xfffffu) * 0.125f;
}

void read_options(int argc, char **argv, struct options *options);
void set_up(struct run *run, MPI_Comm model);
void fill(struct run *run, int frame);
void compute_step(const struct run *run);
/* DIRECTORY/WRITER_d01_007.nc; the same names with every writer but for the first word. */
void frame_path(const struct options *options, const char *writer, int domain, int frame,
                char path[MAX_PATH]);

double now_s(void);
double cpu_s(void);
_Noreturn void fail(const char *what, const char *why);
#endif
