/* SPDX-License-Identifier: Apache-2.0 */
#include "workload.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

static void help(const struct workload *w, const struct workload_option *options) {
  if (w->rank == 0) {
    printf("weir-%s [option]...\n", w->name);
    for (; options->name; ++options)
      printf("  --%s%s  %s\n", options->name, options->kind == 'f' ? "" : " VALUE",
             options->meaning);
  }
  MPI_Finalize();
  exit(0);
}

static _Noreturn void refuse(const struct workload *w, const char *word, const char *why) {
  if (w->rank == 0)
    fprintf(stderr, "weir-%s: %s: %s; --help lists the options\n", w->name, word, why);
  MPI_Finalize();
  exit(2);
}

static int take(const struct workload_option *option, char *text) {
  char *end = text;
  if (option->kind == 's') {
    *(const char **)option->value = text;
    return 1;
  }
  if (option->kind == 'd') *(double *)option->value = strtod(text, &end);
  if (option->kind == 'i') *(int64_t *)option->value = strtoll(text, &end, 10);
  return end != text && *end == '\0';
}

void workload_begin(struct workload *w, const char *name, int *argc, char ***argv,
                    const struct workload_option *options) {
  memset(w, 0, sizeof *w);
  w->name = name;
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &w->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &w->ranks);
  for (int i = 1; i < *argc; ++i) {
    char *word = (*argv)[i];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) help(w, options);
    const struct workload_option *o = options;
    while (o->name && (strncmp(word, "--", 2) != 0 || strcmp(word + 2, o->name) != 0)) ++o;
    if (!o->name) refuse(w, word, "there is no such option");
    if (o->kind == 'f') {
      *(int *)o->value = 1;
    } else {
      if (++i == *argc) refuse(w, word, "needs a value");
      if (!take(o, (*argv)[i])) refuse(w, word, "the value is not a number");
    }
  }
}

double workload_clock(void) { return MPI_Wtime(); }

void workload_start(struct workload *w) {
  MPI_Barrier(MPI_COMM_WORLD);
  w->started = MPI_Wtime();
}

void workload_stop(struct workload *w) {
  MPI_Barrier(MPI_COMM_WORLD);
  w->elapsed_s = MPI_Wtime() - w->started;
}

int workload_end(struct workload *w) {
  double seconds[2] = {w->io_wait_s, w->elapsed_s}, all_seconds[2], longest;
  unsigned long long counts[3] = {w->requests, w->bytes, w->wrong}, all_counts[3];
  MPI_Reduce(seconds, all_seconds, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(&w->elapsed_s, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Allreduce(counts, all_counts, 3, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (w->rank == 0) {
    printf(
        "%s: ranks=%d requests=%llu bytes=%llu io_wait_s=%.6f elapsed_s=%.6f mpp_s=%.6f "
        "wrong=%llu\n",
        w->name, w->ranks, all_counts[0], all_counts[1], all_seconds[0], longest, all_seconds[1],
        all_counts[2]);
    fflush(stdout);
  }
  MPI_Finalize();
  return all_counts[2] != 0;
}

/* A launcher that is notified of an abort drops what it has not read from its pipes: the message is
 * safe when the pipe is empty. */
static void wait_for_launcher(void) {
  struct stat is;
  if (fstat(STDERR_FILENO, &is) != 0 || !S_ISFIFO(is.st_mode)) return;
  for (int tries = 0, unread = 1; tries < 10000 && unread > 0; ++tries) {
    if (ioctl(STDERR_FILENO, FIONREAD, &unread) != 0) return;
    if (unread > 0) usleep(1000);
  }
}

void workload_fail(const struct workload *w, const char *file, const char *what) {
  fprintf(stderr, "weir-%s: rank %d: %s: %s\n", w->name, w->rank, file, what);
  fflush(stderr);
  wait_for_launcher();
  MPI_Abort(MPI_COMM_WORLD, 1);
  exit(1);
}
