/* SPDX-License-Identifier: Apache-2.0
 * No output at all: what the others are compared with. */
#include "experiment.h"

static void start(const struct options *options, MPI_Comm *model) {
  (void)options;
  *model = MPI_COMM_WORLD;
}
static void nothing(struct run *run) { (void)run; }
static void step(struct run *run, long step, int frame, int due) { (void)run, (void)step, (void)frame, (void)due; }

const struct writer kWriter = {"none", start, nothing, step, nothing};
