/* SPDX-License-Identifier: Apache-2.0
 * served CONFIG PATH STEPS LEVELS: two ranks, of which CONFIG makes one a server. The model puts
 * the same fields at each step, which it has made before weir_init; the server prints what it has
 * used of its processor and the time elapsed from the begin of weir_init, without the thread of
 * this program that looks at the others, what its busiest thread has, and the bytes that it was
 * given. */
#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "weir/mpi.h"
#include "weir/weir.h"

enum { kNx = 1440, kNy = 721 };

static weir_error err;

#define TRY(call)                                     \
  do {                                                \
    if ((call) != WEIR_OK) {                          \
      printf("error %d %s\n", err.code, err.message); \
      fflush(stdout);                                 \
      MPI_Abort(MPI_COMM_WORLD, 1);                   \
    }                                                 \
  } while (0)

static double used_s(void) {
  struct rusage r;
  getrusage(RUSAGE_SELF, &r);
  return r.ru_utime.tv_sec + r.ru_stime.tv_sec +
         1e-6 * (r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

/* Threads of the server end before it returns: another one looks at their time. */
enum { kThreads = 256, kPause_us = 2000 };
static atomic_int watches = 1;
static double watching_s; /* of the thread that looks */
static struct {
  long id;
  double first_s, last_s;
} threads[kThreads];

static double of_thread_s(long id) {
  char path[64];
  unsigned long long ns = 0;
  snprintf(path, sizeof path, "/proc/self/task/%ld/schedstat", id);
  FILE *file = fopen(path, "r");
  if (file == NULL) return -1;
  const int found = fscanf(file, "%llu", &ns);
  fclose(file);
  return found == 1 ? 1e-9 * (double)ns : -1;
}

static void look(int is_first) {
  DIR *each = opendir("/proc/self/task");
  if (each == NULL) return;
  for (struct dirent *one; (one = readdir(each)) != NULL;) {
    const long id = atol(one->d_name);
    int at = 0;
    while (at < kThreads && threads[at].id != 0 && threads[at].id != id) at++;
    const double used = id > 0 && at < kThreads ? of_thread_s(id) : -1;
    if (used < 0) continue;
    threads[at].id = id;
    threads[at].last_s = used;
    if (is_first) threads[at].first_s = used;
  }
  closedir(each);
}

static void *watch(void *unused) {
  while (watches) {
    look(0);
    usleep(kPause_us);
  }
  struct timespec used;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  watching_s = (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
  return unused;
}

static double busiest_s(void) {
  double most = 0;
  for (int at = 0; at < kThreads; at++) {
    const double used = threads[at].last_s - threads[at].first_s;
    most = used > most ? used : most;
  }
  return most;
}

static void fill(float *data, long levels) {
  unsigned random = 1;
  for (long l = 0; l < levels; l++) {
    for (long j = 0; j < kNy; j++) {
      for (long i = 0; i < kNx; i++) {
        random = random * 1664525u + 1013904223u;
        const double waves = 20 * sin(0.01 * i + l) * cos(0.02 * j) + 2 * sin(0.3 * i + 0.2 * j);
        *data++ = (float)(270 + waves + 0.1 * (random >> 8) / 16777216.0);
      }
    }
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  if (argc < 5) return 2;
  const long steps = atol(argv[3]), levels = atol(argv[4]);
  float *data = malloc(sizeof *data * kNx * kNy * (size_t)levels);
  fill(data, levels);
  MPI_Barrier(MPI_COMM_WORLD); /* the server waits for none of it */
  MPI_Comm comm;
  weir_context *context;
  pthread_t watcher;
  look(1);
  if (pthread_create(&watcher, NULL, watch, NULL) != 0) return 3;
  const double before_s = used_s(), begin_s = MPI_Wtime();
  TRY(weir_init(MPI_COMM_WORLD, argv[1], &comm, &context, &err));
  watches = 0;
  if (context == NULL) {
    look(0);
    const double all_s = used_s() - before_s, elapsed_s = MPI_Wtime() - begin_s;
    pthread_join(watcher, NULL);
    const double bytes = 4.0 * kNx * kNy * levels * steps;
    printf("server cpu %.6f elapsed %.6f busiest %.6f bytes %.0f\n",
           all_s - watching_s, elapsed_s, busiest_s(), bytes);
    free(data);
    return MPI_Finalize();
  }
  pthread_join(watcher, NULL);
  double lon[kNx], lat[kNy];
  double *level = malloc(sizeof *level * (size_t)levels);
  for (long i = 0; i < kNx; i++) lon[i] = 0.25 * i;
  for (long j = 0; j < kNy; j++) lat[j] = 90 - 0.25 * j;
  for (long l = 0; l < levels; l++) level[l] = 10.0 * (l + 1);
  weir_grid *grid;
  weir_decomposition *all;
  weir_axis *axis;
  weir_field *field;
  weir_stream *stream;
  TRY(weir_grid_create_lonlat(context, "globe", kNx, lon, kNy, lat, &grid, &err));
  TRY(weir_decomposition_create_block(grid, "all", 0, kNx, 0, kNy, &all, &err));
  TRY(weir_axis_create(context, "plev", levels, level, "hPa", &axis, &err));
  TRY(weir_axis_set_text(axis, "standard_name", "air_pressure", &err));
  TRY(weir_field_create(all, "t", WEIR_FLOAT32, 1, &axis, &field, &err));
  TRY(weir_field_set_text(field, "units", "K", &err));
  TRY(weir_stream_create(context, "history", argv[2], "grib2", &stream, &err));
  TRY(weir_stream_add_field(stream, field, WEIR_INSTANT, &err));
  for (long step = 0; step < steps; step++) {
    TRY(weir_step(context, 3600.0 * step, &err));
    TRY(weir_put(field, data, &err));
    TRY(weir_end_step(context, &err));
  }
  TRY(weir_finalize(&context, &err));
  free(data);
  free(level);
  return MPI_Finalize();
}
