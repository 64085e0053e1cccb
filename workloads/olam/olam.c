/* SPDX-License-Identifier: Apache-2.0
 * The phases of an ocean-land-atmosphere model: all ranks read the shared maps, each writes a plot
 * file and a result file of its own into one directory, rank 0 a history file. Barriers separate
 * nine phases, as the time stamps of the OLAM study do. 8exec streams through memory.
 * --setup writes the maps, by rank 0; --verify reads and compares what a run has written. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "files.h"
#include "weir/phase.h"

enum { kMaps = 8, kPhases = 9, kFirstOfFrame = 6, kParameterBytes = 512 };
/* Numbers of contents: maps from 100, plots, results and histories behind them. */
enum { kMapStream = 100, kPlotStream = 1000, kHistoryStream = 200000, kResultStream = 300000 };

static const char *input = ".", *output = ".";
static double input_mb = 500, plot_kb = 200, result_kb = 500, history_mb = 2, state_mb = 96;
static double sleep_s = 0;
static int64_t request_bytes = 65536, record_bytes = 4096, frames = 1, sweeps = 20;
static int setup = 0, verify = 0, io_only = 0, no_barriers = 0, share = 0;

static const struct workload_option options[] = {
    {"setup", 'f', &setup, "write the maps and end"},
    {"verify", 'f', &verify, "read the plots, results and histories instead, and compare"},
    {"input", 's', &input, "directory of the maps (.)"},
    {"output", 's', &output, "directory of plots, results and histories (.)"},
    {"input-mb", 'd', &input_mb, "size of all maps, 10^6 bytes (500)"},
    {"share", 'f', &share, "each rank reads its share of each map, not the whole of it"},
    {"request", 'i', &request_bytes, "bytes of a request to the maps (65536)"},
    {"plot-kb", 'd', &plot_kb, "size of the plot file of a rank, 10^3 bytes (200)"},
    {"result-kb", 'd', &result_kb, "size of the result file of a rank, 10^3 bytes (500)"},
    {"history-mb", 'd', &history_mb, "size of the history file, 10^6 bytes (2)"},
    {"record", 'i', &record_bytes, "bytes of a request to files that are written (4096)"},
    {"frames", 'i', &frames, "times of 7sum, 8exec and 9write (1)"},
    {"state-mb", 'd', &state_mb, "memory of 8exec, all ranks together, 10^6 bytes (96)"},
    {"sweeps", 'i', &sweeps, "passes of 8exec through it (20)"},
    {"sleep", 'd', &sleep_s, "8exec sleeps instead: seconds of one rank, divided by the ranks"},
    {"io-only", 'f', &io_only, "8exec does nothing"},
    {"no-barriers", 'f', &no_barriers, "no barriers between the phases, and no times of them"},
    {0}};

static const char *const map_names[kMaps] = {"initial",    "topography", "soil", "ice",
                                             "vegetation", "depth",      "sst",  "ndvi"};

struct model {
  struct workload w;
  double *state[3];
  int64_t cells; /* of this rank, in each array */
  int frame;
  double exec_s, exec_bytes;
};

static int64_t whole_words(double bytes) { return (int64_t)(bytes / 8) * 8; }

static struct model_file map_file(int number) {
  struct model_file file = {.stream = (uint64_t)(kMapStream + number), .request = request_bytes};
  file.bytes = whole_words(1e6 * input_mb / kMaps);
  snprintf(file.path, sizeof file.path, "%s/%s.map", input, map_names[number]);
  return file;
}

static struct model_file plot_file(int rank) {
  struct model_file file = {.stream = (uint64_t)(kPlotStream + rank), .request = record_bytes};
  file.bytes = whole_words(1e3 * plot_kb);
  snprintf(file.path, sizeof file.path, "%s/plot.%04d", output, rank);
  return file;
}

static struct model_file result_file(int frame, int rank) {
  struct model_file file = {.request = record_bytes, .bytes = whole_words(1e3 * result_kb)};
  file.stream = (uint64_t)(kResultStream + frame * 100000 + rank);
  snprintf(file.path, sizeof file.path, "%s/result.%03d.%04d", output, frame, rank);
  return file;
}

static struct model_file history_file(int frame) {
  struct model_file file = {.request = record_bytes, .bytes = whole_words(1e6 * history_mb)};
  file.stream = (uint64_t)(kHistoryStream + frame);
  snprintf(file.path, sizeof file.path, "%s/history.%03d", output, frame);
  return file;
}

static struct model_file parameter_file(void) {
  struct model_file file = {.stream = kMapStream + kMaps, .request = kParameterBytes};
  file.bytes = kParameterBytes;
  snprintf(file.path, sizeof file.path, "%s/parameters", input);
  return file;
}

static void read_maps(struct model *m) {
  for (int number = 0; number < kMaps; ++number) {
    const struct model_file file = map_file(number);
    const int64_t words = file.bytes / 8;
    const int64_t first = share ? workload_first(words, m->w.rank, m->w.ranks) : 0;
    const int64_t end = share ? workload_first(words, m->w.rank + 1, m->w.ranks) : words;
    file_read(&m->w, &file, 8 * first, 8 * end, 0);
  }
}

static void read_parameters(struct model *m) {
  const struct model_file file = parameter_file();
  if (m->w.rank == 0) file_read(&m->w, &file, 0, file.bytes, 1);
  MPI_Bcast(&frames, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
}

static void make_grid(struct model *m) {
  const int64_t cells = (int64_t)(1e6 * state_mb / (3 * sizeof(double)));
  m->cells = workload_first(cells, m->w.rank + 1, m->w.ranks) -
             workload_first(cells, m->w.rank, m->w.ranks);
  for (int i = 0; i < 3; ++i) {
    m->state[i] = malloc((size_t)(m->cells + 1) * sizeof(double));
    if (!m->state[i]) workload_fail(&m->w, "--state-mb", "there is not so much memory");
  }
}

static void find_neighbours(struct model *m) {
  int64_t *cells = malloc((size_t)m->w.ranks * sizeof *cells);
  MPI_Allgather(&m->cells, 1, MPI_INT64_T, cells, 1, MPI_INT64_T, MPI_COMM_WORLD);
  free(cells);
}

static void set_state(struct model *m) {
  for (int64_t i = 0; i < m->cells; ++i)
    m->state[0][i] = 1, m->state[1][i] = (double)(i % 97), m->state[2][i] = 0;
}

static void write_plot(struct model *m) {
  const struct model_file file = plot_file(m->w.rank);
  file_write(&m->w, &file);
}

static void sum_state(struct model *m) {
  double sum = m->cells ? m->state[2][m->cells / 2] : 0, all;
  MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void sleep_for(double seconds) {
  const struct timespec time = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
  nanosleep(&time, NULL);
}

/* Two loads and a store for each cell and pass: nothing but memory limits it. */
static void execute(struct model *m) {
  if (io_only) return;
  const double begun = workload_clock();
  if (sleep_s > 0) {
    sleep_for(sleep_s / m->w.ranks);
    return;
  }
  for (int64_t pass = 0; pass < sweeps; ++pass) {
    double *restrict to = m->state[(pass + 2) % 3];
    const double *a = m->state[pass % 3], *b = m->state[(pass + 1) % 3];
    for (int64_t i = 0; i < m->cells; ++i) to[i] = 0.5 * (a[i] + b[i]);
  }
  m->exec_s += workload_clock() - begun;
  m->exec_bytes += 24.0 * (double)m->cells * (double)sweeps;
}

static void write_results(struct model *m) {
  const struct model_file result = result_file(m->frame, m->w.rank),
                          history = history_file(m->frame);
  file_write(&m->w, &result);
  if (m->w.rank == 0) file_write(&m->w, &history);
}

static const struct phase {
  const char *name;
  void (*run)(struct model *m);
} phases[kPhases] = {{"1read", read_maps},      {"2params", read_parameters},
                     {"3grid", make_grid},      {"4halo", find_neighbours},
                     {"5init", set_state},      {"6plot", write_plot},
                     {"7sum", sum_state},       {"8exec", execute},
                     {"9write", write_results}};

/* Each time of each phase: seconds of this rank from the barrier before it to its end. */
static int64_t times(void) { return kFirstOfFrame + (kPhases - kFirstOfFrame) * frames; }

static int phase_of(int64_t time) {
  if (time < kFirstOfFrame) return (int)time;
  return (int)(kFirstOfFrame + (time - kFirstOfFrame) % (kPhases - kFirstOfFrame));
}

static void run_phases(struct model *m, double *seconds) {
  for (int64_t time = 0; time < times(); ++time) {
    const struct phase *phase = &phases[phase_of(time)];
    m->frame = (int)(time < kFirstOfFrame ? 0 : (time - kFirstOfFrame) / (kPhases - kFirstOfFrame));
    const double begun = workload_clock();
    weir_phase_begin(phase->name);
    phase->run(m);
    weir_phase_end(phase->name);
    seconds[time] = workload_clock() - begun;
    if (!no_barriers) MPI_Barrier(MPI_COMM_WORLD);
  }
}

/* A line for each phase: seconds until its first rank was done, mean, last, and from the first to
 * the last (sync), each summed over its times; so first_s and sync_s of all phases are the run. */
static void print_phases(const struct model *m, double *seconds) {
  const int count = (int)times();
  double *of[3];
  const MPI_Op how[3] = {MPI_MIN, MPI_SUM, MPI_MAX};
  for (int i = 0; i < 3; ++i) {
    of[i] = malloc((size_t)count * sizeof(double));
    MPI_Reduce(seconds, of[i], count, MPI_DOUBLE, how[i], 0, MPI_COMM_WORLD);
  }
  for (int number = 0; m->w.rank == 0 && number < kPhases; ++number) {
    double sums[3] = {0, 0, 0};
    for (int time = 0; time < count; ++time)
      for (int i = 0; i < 3 && phase_of(time) == number; ++i) sums[i] += of[i][time];
    printf("olam-%s: first_s=%.6f mean_s=%.6f last_s=%.6f sync_s=%.6f\n", phases[number].name,
           sums[0], sums[1] / m->w.ranks, sums[2], sums[2] - sums[0]);
  }
  for (int i = 0; i < 3; ++i) free(of[i]);
}

static void print_memory(const struct model *m) {
  double bytes, longest;
  MPI_Reduce(&m->exec_bytes, &bytes, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(&m->exec_s, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (m->w.rank == 0 && longest > 0)
    printf("olam-memory: bytes=%.0f seconds=%.6f\n", bytes, longest);
}

static void run_model(struct model *m) {
  double *seconds = calloc((size_t)times(), sizeof *seconds);
  workload_start(&m->w);
  run_phases(m, seconds);
  workload_stop(&m->w);
  if (!no_barriers) print_phases(m, seconds);
  print_memory(m);
  for (int i = 0; i < 3; ++i) free(m->state[i]);
  free(seconds);
}

static void write_maps(struct model *m) {
  if (m->w.rank != 0) return;
  for (int number = 0; number < kMaps; ++number) {
    const struct model_file file = map_file(number);
    file_write(&m->w, &file);
  }
  const struct model_file parameters = parameter_file();
  file_write(&m->w, &parameters);
}

static void check_files(struct model *m) {
  const struct model_file plot = plot_file(m->w.rank);
  file_read(&m->w, &plot, 0, plot.bytes, 1);
  for (int frame = 0; frame < frames; ++frame) {
    const struct model_file result = result_file(frame, m->w.rank), history = history_file(frame);
    file_read(&m->w, &result, 0, result.bytes, 1);
    if (m->w.rank == 0) file_read(&m->w, &history, 0, history.bytes, 1);
  }
}

static void check_options(const struct workload *w) {
  if (request_bytes < 8 || request_bytes % 8 || record_bytes < 8 || record_bytes % 8)
    workload_fail(w, "--request, --record", "expected multiples of 8 bytes");
  if (input_mb < 0 || plot_kb < 0 || result_kb < 0 || history_mb < 0 || state_mb < 0 || sleep_s < 0)
    workload_fail(w, "options", "sizes and seconds must not be negative");
  if (frames < 1 || frames > 1000 || sweeps < 0)
    workload_fail(w, "--frames, --sweeps", "expected 1 to 1000 frames, and no negative number");
}

int main(int argc, char **argv) {
  struct model m = {0};
  workload_begin(&m.w, "olam", &argc, &argv, options);
  check_options(&m.w);
  if (!setup && !verify) {
    run_model(&m);
    return workload_end(&m.w);
  }
  workload_start(&m.w);
  if (setup) write_maps(&m);
  if (verify) check_files(&m);
  workload_stop(&m.w);
  return workload_end(&m.w);
}
