/* SPDX-License-Identifier: Apache-2.0
 * The experiment through libweir: one program, the mode is in the configuration. With check=1 or 2
 * it reads the files of a run with bare=1, as a model reads its input and restarts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/mpi.h>
#include <weir/weir.h>

#include "experiment.h"

static weir_context *context;
static weir_field *fields[DOMAINS][FIELDS];
static weir_error err;

static void must(int code) {
  if (code != WEIR_OK) fail(weir_status_name(code), err.message);
}

static void start(const struct options *options, MPI_Comm *model) {
  must(weir_init(MPI_COMM_WORLD, options->config, model, &context, &err));
  if (context == NULL) *model = MPI_COMM_NULL;
}

static weir_grid *grid_of(const struct domain *domain, const char *name) {
  double *x = malloc(sizeof *x * (size_t)(domain->nx + domain->ny));
  weir_grid *grid = NULL;
  if (x == NULL) fail("memory", "refused");
  for (long i = 0; i < domain->nx + domain->ny; i++)
    x[i] = 1000.0 * (double)(i < domain->nx ? i : i - domain->nx);
  must(weir_grid_create_plane(context, name, domain->nx, x, domain->ny, x + domain->nx, &grid,
                              &err));
  free(x);
  return grid;
}

static void define_stream(struct run *run, int d) {
  char name[32], path[MAX_PATH];
  weir_stream *stream = NULL;
  if (snprintf(path, sizeof path, "%s/weir_d%02d_{file:03}.nc", run->options.directory, d + 1) >=
      MAX_PATH)
    fail(path, "the path is too long");
  snprintf(name, sizeof name, "history_d%02d", d + 1);
  must(weir_stream_create(context, name, path, "cdf5", &stream, &err));
  must(weir_stream_set_every_steps(stream, run->options.every, &err));
  must(weir_stream_set_rotation(stream, 1, &err));
  for (int f = 0; f < FIELDS; f++)
    must(weir_stream_add_field(stream, fields[d][f], WEIR_INSTANT, &err));
}

static void define(struct run *run) {
  weir_axis *levels = NULL;
  must(weir_axis_create(context, "bottom_top", LEVELS, NULL, NULL, &levels, &err));
  for (int d = 0; d < DOMAINS; d++) {
    const struct domain *domain = &run->domains[d];
    weir_decomposition *blocks = NULL;
    char name[32];
    snprintf(name, sizeof name, "d%02d", d + 1);
    must(weir_decomposition_create_block(grid_of(domain, name), name, domain->i0, domain->ni,
                                         domain->j0, domain->nj, &blocks, &err));
    for (int f = 0; f < FIELDS; f++) {
      snprintf(name, sizeof name, "%s_d%02d", kFields[f].name, d + 1);
      must(weir_field_create(blocks, name, WEIR_FLOAT32, kFields[f].levels > 1, &levels,
                             &fields[d][f], &err));
      must(weir_field_set_text(fields[d][f], "units", kFields[f].units, &err));
    }
    if (!run->options.check) define_stream(run, d);
  }
  must(weir_context_end_definition(context, &err));
}

static void put(struct run *run, int d, int f) {
  void *data = run->data[d][f];
  double lent = 0;
  if (run->options.lend) {
    const double began = now_s();
    must(weir_field_lend(fields[d][f], &data, &err));
    lent = now_s() - began;
    const float *from = run->data[d][f];
    for (size_t k = 0, count = local_count(run, d, f); k < count; k++)
      ((float *)data)[k] = from[k]; /* the model computes it there */
  }
  const double began = now_s();
  must(weir_put(fields[d][f], data, &err));
  const double took = now_s() - began + lent;
  run->copies_s += took;
  run->put_us[run->puts++] = 1e6 * took;
}

static void get(struct run *run, int d, int f, int frame) {
  static float *values;
  static size_t has;
  const size_t count = local_count(run, d, f);
  if (has < count) {
    values = realloc(values, count * sizeof *values);
    if (values == NULL) fail("memory", "refused");
    has = count;
  }
  char path[MAX_PATH];
  frame_path(&run->options, "weir", d, frame, path);
  must(weir_get(fields[d][f], path, 0, values, &err));
  if (run->options.check == 1 && memcmp(values, run->data[d][f], count * sizeof *values) != 0)
    fail(path, "has other values");
}

static void step(struct run *run, long step, int frame, int due) {
  if (run->options.check) {
    for (int d = 0; d < DOMAINS && due; d++)
      for (int f = 0; f < FIELDS; f++) get(run, d, f, frame);
    return;
  }
  must(weir_step(context, 60.0 * (double)step, &err));
  for (int d = 0; d < DOMAINS && due; d++)
    for (int f = 0; f < FIELDS; f++) put(run, d, f);
  must(weir_end_step(context, &err));
}

static void finish(struct run *run) {
  weir_costs costs;
  must(weir_context_costs(context, &costs, &err));
  run->wait_s = costs.wait_s;
  must(weir_finalize(&context, &err));
}

const struct writer kWriter = {
    .name = "weir", .start = start, .define = define, .step = step, .finish = finish};
