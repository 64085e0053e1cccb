/* SPDX-License-Identifier: Apache-2.0
 * ADIOS2, engine BP4, as its wheel has it: without MPI, so each rank writes a stream of its own, in
 * the order in which its memory has the data. There is nothing to exchange and nothing to put in
 * order, and files are opened once for the run: all of it is in its favour. The library is loaded
 * at run time (adios2=PATH): nothing of it is needed to build. Types and values are those of its C
 * interface. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiment.h"

enum {
  kTypeFloat = 1,
  kModeWrite = 1,
  kModeRead = 2,
  kModeDeferred = 4,
  kModeSync = 5,
  kStepAppend = 0,
  kStepRead = 2,
  kConstant = 1
};

static struct {
  void *(*init_serial)(void);
  void *(*declare_io)(void *, const char *);
  int (*set_engine)(void *, const char *);
  void *(*define_variable)(void *, const char *, int, size_t, const size_t *, const size_t *,
                           const size_t *, int);
  void *(*inquire_variable)(void *, const char *);
  void *(*open)(void *, const char *, int);
  int (*begin_step)(void *, int, float, int *);
  int (*put)(void *, void *, const void *, int);
  int (*get)(void *, void *, void *, int);
  int (*end_step)(void *);
  int (*close)(void *);
  int (*finalize)(void *);
} adios2;

static void *adios, *io[DOMAINS], *engine[DOMAINS], *variables[DOMAINS][FIELDS];

static void must(int code, const char *what) {
  if (code != 0) fail("adios2", what);
}

static void *needed(void *pointer, const char *what) {
  if (pointer == NULL) fail("adios2", what);
  return pointer;
}

static void load(const char *path) {
  const struct {
    const char *name;
    void *to;
  } all[] = {{"adios2_init_serial", &adios2.init_serial},
             {"adios2_declare_io", &adios2.declare_io},
             {"adios2_set_engine", &adios2.set_engine},
             {"adios2_define_variable", &adios2.define_variable},
             {"adios2_inquire_variable", &adios2.inquire_variable},
             {"adios2_open", &adios2.open},
             {"adios2_begin_step", &adios2.begin_step},
             {"adios2_put", &adios2.put},
             {"adios2_get", &adios2.get},
             {"adios2_end_step", &adios2.end_step},
             {"adios2_close", &adios2.close},
             {"adios2_finalize", &adios2.finalize}};
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fail("adios2", dlerror());
  for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
    void *symbol = needed(dlsym(library, all[k].name), all[k].name);
    memcpy(all[k].to, &symbol, sizeof symbol);
  }
}

static void start(const struct options *options, MPI_Comm *model) {
  load(options->adios2);
  *model = MPI_COMM_WORLD;
}

static void define(struct run *run) {
  adios = needed(adios2.init_serial(), "init");
  for (int d = 0; d < DOMAINS; d++) {
    const struct domain *domain = &run->domains[d];
    const size_t zero[3] = {0}, shape[3] = {LEVELS, (size_t)domain->nj, (size_t)domain->ni};
    char name[MAX_PATH];
    snprintf(name, sizeof name, "d%02d", d + 1);
    io[d] = needed(adios2.declare_io(adios, name), "declare_io");
    must(adios2.set_engine(io[d], "BP4"), "set_engine");
    for (int f = 0; f < FIELDS && !run->options.check; f++) {
      const int deep = kFields[f].levels > 1;
      const size_t *from = shape + (deep ? 0 : 1);
      variables[d][f] = needed(adios2.define_variable(io[d], kFields[f].name, kTypeFloat,
                                                      deep ? 3 : 2, from, zero, from, kConstant),
                               "variable");
    }
    if (snprintf(name, sizeof name, "%s/adios2_d%02d_%d.bp", run->options.directory, d + 1,
                 run->rank) >= MAX_PATH)
      fail(name, "the path is too long");
    engine[d] = needed(adios2.open(io[d], name, run->options.check ? kModeRead : kModeWrite), name);
  }
}

/* What the run before has written, compared with what this run has filled in. */
static void read_back(struct run *run, int d) {
  for (int f = 0; f < FIELDS; f++) {
    const size_t bytes = local_count(run, d, f) * sizeof(float);
    float *got = malloc(bytes + 1);
    void *variable = needed(adios2.inquire_variable(io[d], kFields[f].name), "inquire_variable");
    must(adios2.get(engine[d], variable, got, kModeSync), "get");
    if (memcmp(got, run->data[d][f], bytes) != 0)
      fail(kFields[f].name, "adios2 gives back other values");
    free(got);
  }
}

static void step(struct run *run, long step, int frame, int due) {
  (void)step, (void)frame;
  for (int d = 0; d < DOMAINS && due; d++) {
    int status = -1;
    must(adios2.begin_step(engine[d], run->options.check ? kStepRead : kStepAppend, 10.0f, &status),
         "begin_step");
    if (status != 0) fail("adios2", "no step to begin");
    if (run->options.check) read_back(run, d);
    for (int f = 0; f < FIELDS && !run->options.check; f++)
      must(adios2.put(engine[d], variables[d][f], run->data[d][f], kModeDeferred), "put");
    must(adios2.end_step(engine[d]), "end_step");
  }
}

static void finish(struct run *run) {
  (void)run;
  for (int d = 0; d < DOMAINS; d++) must(adios2.close(engine[d]), "close");
  must(adios2.finalize(adios), "finalize");
}

const struct writer kWriter = {
    .name = "adios2", .start = start, .define = define, .step = step, .finish = finish};
