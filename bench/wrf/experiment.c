/* SPDX-License-Identifier: Apache-2.0
 * Domains, fields and computing of the experiment. */
#include "experiment.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const struct field kFields[FIELDS] = {{"U", "m s-1", LEVELS}, {"V", "m s-1", LEVELS},
                                      {"T", "K", LEVELS},     {"QVAPOR", "kg kg-1", LEVELS},
                                      {"PSFC", "Pa", 1},      {"T2", "K", 1},
                                      {"U10", "m s-1", 1},    {"V10", "m s-1", 1}};
static const long kSizes[DOMAINS][2] = {{1770, 1986}, {2974, 3118}};

_Noreturn void fail(const char *what, const char *why) {
  fprintf(stderr, "error: %s: %s\n", what,
          why); /* the bench shows this line, whatever the launcher says after it */
  MPI_Abort(MPI_COMM_WORLD, 1);
  abort();
}

double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of the calling thread: what it computed, not what others made it wait for. */
double cpu_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void read_options(int argc, char **argv, struct options *options) {
  *options = (struct options){.scale = 0.01,
                              .steps = 1,
                              .every = 1,
                              .directory = ".",
                              .config = "",
                              .adios2 = "libadios2_c.so"};
  struct {
    const char *name;
    long *number;
    const char **text;
  } all[] = {{"steps", &options->steps, 0},         {"every", &options->every, 0},
             {"sleep_us", &options->sleep_us, 0},   {"spin", &options->spin, 0},
             {"lend", &options->lend, 0},           {"sync", &options->sync, 0},
             {"bare", &options->bare, 0},           {"check", &options->check, 0},
             {"directory", 0, &options->directory}, {"config", 0, &options->config},
             {"adios2", 0, &options->adios2},       {0, 0, 0}};
  for (int a = 1; a < argc; a++) {
    char *equals = strchr(argv[a], '='), *end = "";
    const size_t length = equals ? (size_t)(equals - argv[a]) : 0;
    int found = 0;
    if (length == 5 && !strncmp(argv[a], "scale", 5))
      options->scale = strtod(equals + 1, &end), found = 1;
    for (int k = 0; all[k].name && !found; k++) {
      if (strlen(all[k].name) != length || strncmp(all[k].name, argv[a], length)) continue;
      found = 1;
      if (all[k].text) *all[k].text = equals + 1;
      else *all[k].number = strtol(equals + 1, &end, 10);
    }
    if (!found || *end != '\0') fail("no such option, or not a number", argv[a]);
  }
  if (options->scale <= 0 || options->every < 1 || options->steps < 1 ||
      (options->steps - 1) / options->every >= MAX_FRAMES)
    fail("options", "scale, steps and every must be positive, frames at most 256");
}

void domain_sizes(const struct options *options, int domain, long *nx, long *ny) {
  const double side = sqrt(options->scale);
  *nx = (long)fmax(4, round(side * (double)kSizes[domain][0]));
  *ny = (long)fmax(4, round(side * (double)kSizes[domain][1]));
}

void share(long n, int parts, int part, long *first, long *count) {
  *first = n * part / parts;
  *count = n * (part + 1) / parts - *first;
}

double frame_bytes(const struct options *options) {
  double points = 0, levels = 0;
  for (int f = 0; f < FIELDS; f++) levels += kFields[f].levels;
  for (int d = 0; d < DOMAINS; d++) {
    long nx, ny;
    domain_sizes(options, d, &nx, &ny);
    points += (double)nx * (double)ny;
  }
  return points * levels * sizeof(float);
}

size_t local_count(const struct run *run, int domain, int field) {
  const struct domain *d = &run->domains[domain];
  return (size_t)(d->ni * d->nj) * (size_t)kFields[field].levels;
}

size_t local_bytes(const struct run *run) {
  size_t count = 0;
  for (int d = 0; d < DOMAINS; d++)
    for (int f = 0; f < FIELDS; f++) count += local_count(run, d, f);
  return count * sizeof(float);
}

void set_up(struct run *run, MPI_Comm model) {
  int dims[2] = {0, 0};
  run->model = model;
  MPI_Comm_rank(model, &run->rank);
  MPI_Comm_size(model, &run->size);
  MPI_Dims_create(run->size, 2, dims);
  run->rows = dims[0], run->columns = dims[1];
  for (int d = 0; d < DOMAINS; d++) {
    struct domain *domain = &run->domains[d];
    domain_sizes(&run->options, d, &domain->nx, &domain->ny);
    share(domain->nx, run->columns, run->rank % run->columns, &domain->i0, &domain->ni);
    share(domain->ny, run->rows, run->rank / run->columns, &domain->j0, &domain->nj);
    for (int f = 0; f < FIELDS; f++) {
      const size_t bytes = local_count(run, d, f) * sizeof(float);
      run->data[d][f] = malloc(bytes + 1);
      if (run->data[d][f] == NULL) fail("memory", "refused");
      memset(run->data[d][f], 0, bytes);
    }
  }
}

void fill(struct run *run, int frame) {
  for (int d = 0; d < DOMAINS; d++) {
    const struct domain *domain = &run->domains[d];
    for (int f = 0; f < FIELDS; f++) {
      float *to = run->data[d][f];
      for (long level = 0; level < kFields[f].levels; level++)
        for (long j = 0; j < domain->nj; j++)
          for (long i = 0; i < domain->ni; i++)
            *to++ = value_at(d, f, level, domain->j0 + j, domain->i0 + i, frame);
    }
  }
}

/* A smoothing of 64 x 64 numbers, again and again: what a model's inner loops are, small enough to
 * stay in a cache. */
static void smooth(long passes) {
  enum { N = 64 };
  static float a[2][N][N];
  for (long pass = 0; pass < passes; pass++) {
    float(*from)[N] = a[pass & 1], (*to)[N] = a[(pass + 1) & 1];
    from[N / 2][N / 2] += 1.0f;
    for (int j = 1; j < N - 1; j++)
      for (int i = 1; i < N - 1; i++)
        to[j][i] =
            0.2f * (from[j][i] + from[j - 1][i] + from[j + 1][i] + from[j][i - 1] + from[j][i + 1]);
  }
  if (a[0][1][1] < 0) fail("smooth", "below 0"); /* keeps the result needed */
}

void compute_step(const struct run *run) {
  if (run->options.spin) smooth(run->options.spin);
  if (run->options.sleep_us) {
    struct timespec t = {run->options.sleep_us / 1000000, run->options.sleep_us % 1000000 * 1000};
    nanosleep(&t, NULL);
  }
}

void frame_path(const struct options *options, const char *writer, int domain, int frame,
                char path[MAX_PATH]) {
  if (snprintf(path, MAX_PATH, "%s/%s_d%02d_%03d.nc", options->directory, writer, domain + 1,
               frame) >= MAX_PATH)
    fail(options->directory, "the path is too long");
}
