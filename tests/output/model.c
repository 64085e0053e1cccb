// SPDX-License-Identifier: Apache-2.0
// A model without physics: fields whose value is a function of global index, level and step,
// written through libweir.
//   model CONFIG steps=4 kind=block|rows|scatter|cyclic|lopsided ...: see options().
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <weir/mpi.h>
#include <weir/weir.h>

static struct {
  long nx, ny, levels, steps, fields, rotation, every_steps, halo, lend, rank_sleep_us, skip_step,
      skip_rank, mean, lonlat, get, order, kill_step, kill_rank, hang_step, wrong, pause_ms, hang_s,
      usage, stop_step, stop_rank, go_on_step, step_s, check_step, first, parts, written, packed,
      restart_step, mapping, file_bytes;
  const char *kind, *format, *path, *type, *second, *chdir, *wait;
} o = {24, 10, 3,  4,  2,  0, 1,       0,      0,        0,       -1, -1, 0,  0,
       0,  0,  -1, -1, -1, 0, 0,       20,     0,        -1,      -1, -1, 60, -1,
       0,  1,  0,  0,  -1, 0, 0,  "block", "cdf5", "out.nc", "float", 0,  0,  0};

static void options(int argc, char **argv) {
  struct {
    const char *name;
    long *number;
    const char **text;
  } all[] = {{"nx", &o.nx, 0},
             {"ny", &o.ny, 0},
             {"levels", &o.levels, 0},
             {"steps", &o.steps, 0},
             {"fields", &o.fields, 0},
             {"rotation", &o.rotation, 0},
             {"every_steps", &o.every_steps, 0},
             {"halo", &o.halo, 0},
             {"lend", &o.lend, 0},
             {"skip_step", &o.skip_step, 0},
             {"skip_rank", &o.skip_rank, 0},
             {"mean", &o.mean, 0},
             {"lonlat", &o.lonlat, 0},
             {"get", &o.get, 0},
             {"order", &o.order, 0},
             {"kill_step", &o.kill_step, 0},
             {"kill_rank", &o.kill_rank, 0},
             {"hang_step", &o.hang_step, 0},
             {"wrong", &o.wrong, 0},
             {"pause_ms", &o.pause_ms, 0},
             {"hang_s", &o.hang_s, 0},
             {"usage", &o.usage, 0},
             {"stop_step", &o.stop_step, 0},
             {"stop_rank", &o.stop_rank, 0},
             {"go_on_step", &o.go_on_step, 0},
             {"step_s", &o.step_s, 0},
             {"check_step", &o.check_step, 0},
             {"first", &o.first, 0},
             {"file_bytes", &o.file_bytes, 0},
             {"parts", &o.parts, 0},
             {"written", &o.written, 0},
             {"packed", &o.packed, 0},
             {"restart_step", &o.restart_step, 0},
             {"mapping", &o.mapping, 0},
             {"kind", 0, &o.kind},
             {"format", 0, &o.format},
             {"path", 0, &o.path},
             {"type", 0, &o.type},
             {"second", 0, &o.second},
             {"chdir", 0, &o.chdir},
             {"wait", 0, &o.wait}};
  for (int i = 2; i < argc; i++) {
    const char *equals = strchr(argv[i], '=');
    int found = 0;
    for (size_t k = 0; equals && k < sizeof all / sizeof all[0]; k++) {
      if (strlen(all[k].name) != (size_t)(equals - argv[i]) ||
          strncmp(all[k].name, argv[i], strlen(all[k].name)))
        continue;
      found = 1;
      if (all[k].number) *all[k].number = atol(equals + 1);
      else *all[k].text = equals + 1;
    }
    if (!found) {
      fprintf(stderr, "no option %s\n", argv[i]);
      exit(2);
    }
  }
}

static int me;  // rank in the world
static int pids[64];

// One of several models in one job, each with a communicator and files of its own: K.PATH of part
// K.
static MPI_Comm part_of_world(void) {
  static char path[256];
  MPI_Comm part;
  int ranks;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int number = (int)(me * o.parts / ranks);
  snprintf(path, sizeof path, "%d.%s", number, o.path);
  o.path = path;
  MPI_Comm_split(MPI_COMM_WORLD, number, me, &part);
  return part;
}

// Says what a call has returned, on each rank, and goes on.
static int said(const char *call, int code, const weir_error *err) {
  if (code) {
    printf("rank %d: %s: %s: %s\n", me, call, weir_status_name(code), err->message);
    fflush(stdout);
  }
  return code;
}
#define SAY(call, ...) said(#call, call(__VA_ARGS__, &err), &err)

static double value(long field, long global, long level, long step) {
  return field * 100000 + level * 10000 + (global % 997) + step * 0.25;
}

static long *indices;
static long count;
static long i0, ni, j0, nj;

static int owner(long index, int ranks) {
  if (!strcmp(o.kind, "cyclic")) return (int)(index % ranks);
  if (!strcmp(o.kind, "scatter"))
    return (int)((unsigned long)(index * 2654435761u) % 4294967291u % (unsigned long)ranks);
  return index < o.nx * o.ny / 5 ? 0 : ranks - 1;  // lopsided: ranks between have nothing
}

static void decompose(int rank, int ranks) {
  if (!strcmp(o.kind, "block") || !strcmp(o.kind, "rows")) {
    int columns = 1;
    if (!strcmp(o.kind, "block")) {
      for (int c = 1; c * c <= ranks; c++)
        if (ranks % c == 0) columns = c;
    }
    int rows = ranks / columns, ci = rank % columns, cj = rank / columns;
    i0 = o.nx * ci / columns;
    ni = o.nx * (ci + 1) / columns - i0;
    j0 = o.ny * cj / rows;
    nj = o.ny * (cj + 1) / rows - j0;
    count = ni * nj;
    indices = malloc(sizeof(long) * (size_t)(count + 1));
    for (long j = 0; j < nj; j++)
      for (long i = 0; i < ni; i++) indices[j * ni + i] = (j0 + j) * o.nx + i0 + i;
    return;
  }
  indices = malloc(sizeof(long) * (size_t)(o.nx * o.ny));
  for (long g = 0; g < o.nx * o.ny; g++)
    if (owner(g, ranks) == rank) indices[count++] = g;
  if (!strcmp(o.kind, "scatter")) {  // the model's order is not that of the grid
    for (long k = 0; k < count / 2; k++) {
      long other = indices[count - 1 - k];
      indices[count - 1 - k] = indices[k];
      indices[k] = other;
    }
  }
}

static void fill(long field, long step, void *data, int as_double, long halo) {
  long row = ni + 2 * halo;
  for (long level = 0; level < o.levels; level++) {
    for (long k = 0; k < count; k++) {
      long at = level * count + k;
      if (halo) at = (level * (nj + 2 * halo) + k / ni + halo) * row + k % ni + halo;
      if (as_double) ((double *)data)[at] = value(field, indices[k], level, step);
      else ((float *)data)[at] = (float)value(field, indices[k], level, step);
    }
  }
}

static int check(weir_field *f, long field, void *data, size_t bytes, int as_double) {
  weir_error err;
  memset(data, 0xff, bytes);
  long s = o.check_step >= 0 ? o.check_step : o.get - 1;
  if (SAY(weir_get, f, o.path, o.get - 1, data)) return 1;
  long wrong = 0;
  for (long level = 0; level < o.levels; level++)
    for (long k = 0; k < count; k++) {
      long at = level * count + k;
      if (o.halo)
        at = (level * (nj + 2 * o.halo) + k / ni + o.halo) * (ni + 2 * o.halo) + k % ni + o.halo;
      double got = as_double ? ((double *)data)[at] : ((float *)data)[at];
      if (got != (as_double ? value(field, indices[k], level, s)
                            : (float)value(field, indices[k], level, s)))
        wrong++;
    }
  printf("rank %d: field %ld: %ld values wrong of %ld\n", me, field, wrong, o.levels * count);
  return wrong != 0;
}

static weir_context *context;
static weir_stream *stream;
static weir_field *fields[256];
static int as_double;

static int define(int rank, int ranks) {
  weir_error err;
  weir_grid *grid;
  weir_decomposition *decomposition;
  weir_axis *axis;
  double *x = malloc(sizeof(double) * (size_t)(o.nx + o.ny));
  for (long i = 0; i < o.nx; i++) x[i] = (o.nx > 720 ? 360.0 / o.nx : 0.5) * i;
  for (long j = 0; j < o.ny; j++) x[o.nx + j] = -80 + 160.0 * j / o.ny;
  decompose(rank, ranks);
  if (o.wrong == 1 && rank == 1) indices[0] = indices[count - 1];
  if (o.wrong == 2 && rank == 1) i0++;
  if (o.lonlat) SAY(weir_grid_create_curvilinear, context, "grid", o.nx, o.ny, &grid);
  else SAY(weir_grid_create_lonlat, context, "grid", o.nx, x, o.ny, x + o.nx, &grid);
  if (o.mapping) {
    const double parallels[] = {30, 60.0 * (double)o.mapping};
    SAY(weir_grid_set_mapping, grid, "crs", "lambert_conformal_conic");
    SAY(weir_grid_set_mapping_text, grid, "long_name", "of the model");
    SAY(weir_grid_set_mapping_numbers, grid, "standard_parallel", 2, parallels);
    SAY(weir_grid_set_mapping_numbers, grid, "earth_radius", 1, (double[]){6371229});
  }
  if (!strcmp(o.kind, "block") || !strcmp(o.kind, "rows"))
    SAY(weir_decomposition_create_block, grid, "mine", i0, ni, j0, nj, &decomposition);
  else SAY(weir_decomposition_create_indices, grid, "mine", count, indices, &decomposition);
  if (o.halo) SAY(weir_decomposition_set_halo, decomposition, o.halo, o.halo, o.halo, o.halo);
  if (o.lonlat) {
    double *lon = malloc(sizeof(double) * (size_t)(2 * count + 1)), *lat = lon + count;
    for (long k = 0; k < count; k++)
      lon[k] = 0.5 * (indices[k] % o.nx), lat[k] = 0.25 * (double)(indices[k] / o.nx);
    SAY(weir_grid_set_lonlat, grid, decomposition, lon, lat);
  }
  SAY(weir_axis_create, context, "level", o.levels, NULL, NULL, &axis);
  SAY(weir_stream_create, context, "history", o.path, o.format, &stream);
  SAY(weir_stream_set_rotation, stream, o.rotation);
  SAY(weir_stream_set_every_steps, stream, o.every_steps);
  as_double = !strcmp(o.type, "double") || !strcmp(o.type, "double-float");
  for (long f = 0; f < o.fields; f++) {
    char name[16];
    snprintf(name, sizeof name, "f%ld", f);
    SAY(weir_field_create, decomposition, name, as_double ? WEIR_FLOAT64 : WEIR_FLOAT32, 1, &axis,
        &fields[f]);
    SAY(weir_field_set_text, fields[f], "units", "1");
    if (!strcmp(o.type, "double-float")) SAY(weir_field_set_file_type, fields[f], WEIR_FLOAT32);
    if (o.packed) {  // thousandths
      SAY(weir_field_set_file_type, fields[f], WEIR_INT16);
      SAY(weir_field_set_number, fields[f], "scale_factor", 1e-3 * (double)o.packed);
      SAY(weir_field_set_number, fields[f], "add_offset", f * 100000.0 - 10);
      SAY(weir_field_set_number, fields[f], "missing_value", value(f, 17, 0, 3));
    }
    const weir_operation all[] = {WEIR_MEAN, WEIR_MINIMUM, WEIR_MAXIMUM, WEIR_ACCUMULATE,
                                  WEIR_MEAN};
    if (o.mean == 2 && f == 4)
      SAY(weir_field_set_number, fields[f], "missing_value", value(f, 17, 1, 3));
    SAY(weir_stream_add_field, stream, fields[f],
        o.mean == 2 && f < 5 ? all[f]
        : o.mean && f == 0   ? WEIR_MEAN
                             : WEIR_INSTANT);
  }
  if (o.second) {
    weir_stream *second;
    SAY(weir_stream_create, context, "second", o.second, o.format, &second);
    SAY(weir_stream_add_field, second, fields[0], WEIR_INSTANT);
  }
  if (o.chdir && chdir(o.chdir)) perror(o.chdir);
  free(x);
  return SAY(weir_context_end_definition, context);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Until the file that grows has so many records, as the header of the form CDF-5 says: servers
// write behind the model.
static void await_records(long wanted) {
  char name[4096];
  snprintf(name, sizeof name, ".%s.weir-part", o.path);
  for (int tries = 0; tries < 6000; tries++, usleep(10000)) {
    unsigned char head[12] = {0};
    long records = 0;
    FILE *file = fopen(name, "rb");
    if (file == NULL) continue;
    if (fread(head, 1, sizeof head, file) == sizeof head)
      for (int i = 4; i < 12; i++) records = records << 8 | head[i];
    fclose(file);
    if (records >= wanted) return;
  }
  fprintf(stderr, "%s has not got %ld records\n", name, wanted);
}

static volatile sig_atomic_t to_stop;
static void stop_soon(int unused) {
  (void)unused;
  to_stop = 1;
}

// libweir's waits come here. A server stops in one of them, as a disk would stop it: not within a
// call of MPI, where it may hold what others on the node need (the queue of a receiver in shared
// memory) and make them deaf.
int usleep(useconds_t us) {
  if (to_stop) to_stop = 0, raise(SIGSTOP);
  const struct timespec time = {us / 1000000, us % 1000000 * 1000};
  return nanosleep(&time, NULL);
}

// As ps shows it: T stopped, Z ended, also of a process that is not there any more.
static char state_of(int pid) {
  char name[64], state = 0;
  snprintf(name, sizeof name, "/proc/%d/stat", pid);
  FILE *stat = fopen(name, "r");
  if (stat == NULL) return 'Z';
  if (fscanf(stat, "%*d (%*[^)]) %c", &state) != 1) state = 0;
  fclose(stat);
  return state;
}

static void stop_server(void) {
  kill(pids[o.stop_rank], SIGUSR2);
  for (char state = 0; state != 'T' && state != 'Z'; usleep(1000))
    state = state_of(pids[o.stop_rank]);
}

// Longer than the others of the model are there, on a machine that is slow, too.
static void hang(int self, int ranks) {
  const double began = now();
  for (int rank = 0; rank < ranks; usleep(10000)) {
    if (now() - began > (double)o.hang_s) return;
    if (rank == self || state_of(pids[rank]) == 'Z') rank++;
  }
}

static int step(long s, int rank, int ranks, void *data) {
  weir_error err;
  int bad = SAY(weir_step, context, (o.order == 2 && s == 2 ? 0 : s) * (double)o.step_s) != 0;
  for (long k = 0; k < o.fields; k++) {
    long f = o.order == 1 ? o.fields - 1 - k : k;
    if (s == o.skip_step && rank == o.skip_rank && f == 1) continue;
    void *to = data;
    if (o.lend) bad |= SAY(weir_field_lend, fields[f], &to) != 0;
    if (to == NULL) to = data;
    fill(f, s, to, as_double, o.halo);
    bad |= SAY(weir_put, fields[f], to) != 0;
  }
  if (o.written && rank == 0 && (s == o.kill_step || s == o.stop_step)) await_records(o.written);
  if (s == o.kill_step && rank == 0) {
    kill(pids[o.kill_rank], SIGKILL);
    usleep(300000);
  }
  if (s == o.stop_step && rank == 0) stop_server();
  if (s == o.go_on_step && rank == 0) kill(pids[o.stop_rank], SIGCONT);
  if (s == o.hang_step && rank == o.skip_rank) hang(rank, ranks);
  bad |= SAY(weir_end_step, context) != 0;
  if (o.wait && s == 1 &&
      rank == 0) {  // until somebody has opened the pipe for writing, and closed it
    FILE *pipe = fopen(o.wait, "r");
    if (pipe == NULL || fgetc(pipe) != EOF) perror(o.wait);
    if (pipe) fclose(pipe);
  }
  if (o.pause_ms) usleep((useconds_t)(o.pause_ms * 1000));
  return bad;
}

static void memory(long *private_kb, long *peak_kb) {
  char line[256];
  FILE *status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status)) {
    sscanf(line, "RssAnon: %ld", private_kb);
    sscanf(line, "VmHWM: %ld", peak_kb);
  }
  if (status) fclose(status);
}

static long private_peak_kb, mpi_kb;  // mpi_kb: the most of all when MPI had begun

// The kernel keeps no greatest value of private memory.
static void *watch(void *unused) {
  for (long peak = 0, private_kb = 0;; usleep(1000)) {
    memory(&private_kb, &peak);
    if (private_kb > private_peak_kb) private_peak_kb = private_kb;
  }
  return unused;
}

// Processor time; private memory now and at most (windows of others that it maps are theirs); and
// the most of all, those included, beyond what MPI begins with, which is that of the libraries that
// it finds on the machine.
static void usage(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  long own_kb = 0, peak_kb = 0;
  memory(&own_kb, &peak_kb);
  printf(
      "server %d: user %.3f s, system %.3f s, own memory %ld KiB, at most %ld KiB, peak %ld KiB\n",
      me, (double)used.ru_utime.tv_sec + 1e-6 * (double)used.ru_utime.tv_usec,
      (double)used.ru_stime.tv_sec + 1e-6 * (double)used.ru_stime.tv_usec, own_kb, private_peak_kb,
      peak_kb - mpi_kb);
}

int main(int argc, char **argv) {
  weir_error err;
  MPI_Comm model;
  int rank, ranks;
  options(argc, argv);
  MPI_Init(&argc, &argv);
  memory(&private_peak_kb, &mpi_kb);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  signal(SIGUSR2, stop_soon);
  int pid = (int)getpid();
  if (o.kill_rank >= 0 || o.stop_rank >= 0 || o.hang_step >= 0)
    MPI_Allgather(&pid, 1, MPI_INT, pids, 1, MPI_INT, MPI_COMM_WORLD);
  const struct rlimit largest = {(rlim_t)o.file_bytes, RLIM_INFINITY};
  if (o.file_bytes > 0) setrlimit(RLIMIT_FSIZE, &largest);
  pthread_t watcher;
  if (o.usage) pthread_create(&watcher, NULL, watch, NULL);
  int code = SAY(weir_init, o.parts > 1 ? part_of_world() : MPI_COMM_WORLD, argc > 1 ? argv[1] : "",
                 &model, &context);
  if (code == 0 && context == NULL && o.restart_step >= 0)
    code = SAY(weir_init, MPI_COMM_WORLD, argc > 1 ? argv[1] : "", &model, &context);
  if (code || context == NULL) {
    if (o.usage) usage();
    if (o.kill_rank >= 0 || o.hang_step >= 0) _exit(code != 0);
    MPI_Finalize();
    return code != 0;
  }
  MPI_Comm_rank(model, &rank);
  MPI_Comm_size(model, &ranks);
  int bad = define(rank, ranks) != 0;
  size_t bytes =
      sizeof(double) *
      (size_t)(o.levels * (ni + 2 * o.halo + 1) * (nj + 2 * o.halo + 1) + o.levels * count + 1);
  void *data = calloc(bytes, 1);
  double began = now();
  for (long s = o.first; s < o.steps && !o.get && !(bad && o.wrong); s++) {
    if (s ==
        o.restart_step) {  // a restart is written here: what has come before it outlives the job
      bad |= SAY(weir_finalize, &context) != 0;
      bad |= SAY(weir_init, MPI_COMM_WORLD, argc > 1 ? argv[1] : "", &model, &context) != 0;
      count = 0;
      bad |= define(rank, ranks) != 0;
    }
    bad |= step(s, rank, ranks, data);
  }
  for (long f = 0; f < o.fields && o.get; f++) bad |= check(fields[f], f, data, bytes, as_double);
  weir_costs costs = {0};
  weir_context_costs(context, &costs, NULL);
  bad |= SAY(weir_finalize, &context) != 0;
  if (o.go_on_step >= o.steps && rank == 0) kill(pids[o.stop_rank], SIGCONT);
  if (rank == 0)
    printf("ok %d put %.4f wait %.4f end %.4f total %.4f bytes %lld frames %lld\n", !bad,
           costs.put_s, costs.wait_s, costs.end_step_s, now() - began, (long long)costs.put_bytes,
           (long long)costs.frames);
  fflush(stdout);
  if (o.kill_rank >= 0 || o.hang_step >= 0)
    _exit(bad);  // MPI_Finalize would wait for those that are gone
  MPI_Finalize();
  return bad;
}
