/* SPDX-License-Identifier: Apache-2.0
 * What write_plain.c and read_plain.c share: who has which part of a file, and what it contains. */
#ifndef WEIR_BENCH_WRF_PLAIN_H
#define WEIR_BENCH_WRF_PLAIN_H

#include "experiment.h"

/* Bytes of a call, and of the parts of it that begin with their place. */
enum { PIECE = 4 << 20, STAMPED = 1 << 20 };

static inline void plain_share(const struct run *run, int d, long *first, long *count) {
  long levels = 0;
  for (int f = 0; f < FIELDS; f++) levels += kFields[f].levels;
  share(run->domains[d].nx * run->domains[d].ny * levels * (long)sizeof(float), run->size,
        run->rank, first, count);
}
#endif
