/* SPDX-License-Identifier: Apache-2.0
 * Runs a writer through the experiment and prints one line of results. Every frame begins with a
 * barrier, so that a rank's time in output is that of output and not of computing; the time of a
 * frame is that of the slowest rank, as the model as a whole waits for it. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "experiment.h"

struct times {
  double frames_s[MAX_FRAMES]; /* of due steps */
  double between_s;            /* in the writer's calls at other steps */
  double compute_s, compute_cpu_s, copy_s, put_s, define_s, final_s, began_s, total_s;
  double beside_s; /* for what only the measurement needs: not in the total */
};

/* The greatest private memory of this process, looked at every few milliseconds: the kernel keeps
 * no mark of it, and its mark of all memory counts pages of other processes' windows. */
static struct {
  pthread_t thread;
  volatile int over;
  long peak_pages;
} sampler;

static void look(int statm) {
  char text[128] = "";
  long size, resident, shared;
  if (pread(statm, text, sizeof text - 1, 0) <= 0 ||
      sscanf(text, "%ld %ld %ld", &size, &resident, &shared) != 3)
    return;
  if (resident - shared > sampler.peak_pages) sampler.peak_pages = resident - shared;
}

static void *sample(void *unused) {
  const int statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (statm < 0) fail("/proc/self/statm", "cannot be read");
  while (!sampler.over) {
    look(statm);
    usleep(10000);
  }
  close(statm);
  return unused;
}

static int ascending(const void *a, const void *b) {
  const double difference = *(const double *)a - *(const double *)b;
  return difference < 0 ? -1 : difference > 0;
}

/* One warm copy of a frame's data into memory that is there already. Two places in turn, as a put
 * has them. */
static double copy_frame(const struct run *run) {
  static char *slots[2];
  static int turn;
  const size_t bytes = local_bytes(run);
  for (int s = 0; s < 2 && slots[s] == NULL; s++) {
    slots[s] = malloc(bytes + 1);
    if (slots[s] == NULL) fail("memory", "refused");
    memset(slots[s], 1, bytes);
  }
  char *to = slots[turn++ & 1];
  const double began = now_s();
  for (int d = 0; d < DOMAINS; d++)
    for (int f = 0; f < FIELDS; f++) {
      const size_t size = local_count(run, d, f) * sizeof(float);
      memcpy(to, run->data[d][f], size);
      to += size;
    }
  return now_s() - began;
}

static void loop(struct run *run, struct times *t) {
  const struct options *o = &run->options;
  int frame = 0;
  if (!o->bare) copy_frame(run);
  fill(run, 0);
  MPI_Barrier(run->model);
  t->began_s = now_s();
  for (long step = 0; step < o->steps; step++) {
    const int due = step % o->every == 0;
    const double compute = now_s(), cpu = cpu_s();
    compute_step(run);
    t->compute_cpu_s += cpu_s() - cpu, t->compute_s += now_s() - compute;
    if (due && !o->bare) {
      const double beside = now_s();
      fill(run, frame);
      copy_frame(run); /* so that the next copy and the writer's find the data in the same caches */
      t->copy_s += copy_frame(run);
      t->beside_s += now_s() - beside;
      MPI_Barrier(run->model);
    }
    const double began = now_s();
    if (kWriter.step) kWriter.step(run, step, frame, due);
    for (int d = 0; d < DOMAINS && due && kWriter.write_domain; d++)
      kWriter.write_domain(run, d, frame);
    *(due ? &t->frames_s[frame] : &t->between_s) += now_s() - began;
    frame += due;
  }
}

static double greatest(MPI_Comm comm, double value) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, comm);
  return value;
}

static double median(struct run *run) {
  if (run->puts == 0) return 0;
  qsort(run->put_us, (size_t)run->puts, sizeof run->put_us[0], ascending);
  return run->put_us[run->puts / 2];
}

/* On all ranks of the model; the first prints. */
static void report(struct run *run, struct times *t) {
  const int frames = (int)((run->options.steps - 1) / run->options.every) + 1;
  MPI_Comm comm = run->model;
  MPI_Allreduce(MPI_IN_PLACE, t->frames_s, frames, MPI_DOUBLE, MPI_MAX, comm);
  double effective = greatest(comm, t->between_s),
         sums[4] = {t->put_s, t->copy_s, t->compute_cpu_s, t->compute_s};
  for (int f = 0; f < frames; f++) effective += t->frames_s[f];
  MPI_Allreduce(MPI_IN_PLACE, sums, 4, MPI_DOUBLE, MPI_SUM, comm);
  const double final = greatest(comm, t->final_s), total = greatest(comm, t->total_s),
               define = greatest(comm, t->define_s);
  const double put_us = greatest(comm, median(run)), wait = greatest(comm, run->wait_s);
  if (run->rank != 0) return;
  printf(
      "wrf: ranks=%d frames=%d bytes=%.0f effective_s=%.6f final_s=%.6f total_s=%.6f define_s=%.6f "
      "put_s=%.6f copy_s=%.6f put_us=%.3f wait_s=%.6f "
      "compute_cpu_s=%.6f compute_s=%.6f",
      run->size, frames, frames * frame_bytes(&run->options), effective, final, total, define,
      sums[0], sums[1], put_us, wait, sums[2] / run->size, sums[3] / run->size);
}

/* Of all threads of this process. */
static double process_cpu_s(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)used.ru_utime.tv_sec + (double)used.ru_stime.tv_sec +
         1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* Collective over the world: greatest private memory and processor seconds of ranks that served,
 * and of those that computed. */
static void report_processes(int served, double cpu) {
  const double peak = (double)sampler.peak_pages * (double)sysconf(_SC_PAGESIZE);
  double mine[3] = {served ? peak : 0, served ? 0 : peak, served}, all[3],
         seconds[2] = {served ? cpu : 0, served ? 0 : cpu}, sums[2];
  MPI_Allreduce(&mine[2], &all[2], 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(seconds, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0)
    printf(" servers=%.0f server_bytes=%.0f rank_bytes=%.0f server_cpu_s=%.6f rank_cpu_s=%.6f\n",
           all[2], all[0], all[1], sums[0], sums[1]);
}

int main(int argc, char **argv) {
  static struct run run; /* large */
  static struct times times;
  MPI_Init(&argc, &argv);
  read_options(argc, argv, &run.options);
  if (pthread_create(&sampler.thread, NULL, sample, NULL)) fail("thread", "refused");
  MPI_Comm model = MPI_COMM_WORLD;
  double cpu = process_cpu_s(); /* what MPI_Init has cost is not output */
  if (kWriter.start) kWriter.start(&run.options, &model);
  if (model != MPI_COMM_NULL) {
    set_up(&run, model);
    const double defined = now_s();
    if (kWriter.define) kWriter.define(&run);
    times.define_s = now_s() - defined;
    MPI_Barrier(model);
    cpu = process_cpu_s();
    loop(&run, &times);
    MPI_Comm kept;
    MPI_Comm_dup(run.model, &kept); /* finish frees the writer's */
    const double last = now_s();
    if (kWriter.finish) kWriter.finish(&run);
    times.final_s = now_s() - last, times.total_s = now_s() - times.began_s - times.beside_s,
    times.put_s = run.copies_s;
    cpu = process_cpu_s() - cpu;
    run.model = kept;
    report(&run, &times);
  }
  if (model == MPI_COMM_NULL) cpu = process_cpu_s() - cpu;
  sampler.over = 1;
  pthread_join(sampler.thread, NULL);
  report_processes(model == MPI_COMM_NULL, cpu);
  return MPI_Finalize() != MPI_SUCCESS;
}
