/* SPDX-License-Identifier: Apache-2.0 */
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t words[kPeriodWords + kLargestPiece / 8];

const unsigned char *contents_at(uint64_t offset) {
  if (words[0] == 0) {
    for (uint64_t i = 0; i < sizeof words / sizeof *words; ++i) {
      uint64_t x = (i % kPeriodWords + 1) * 0x9E3779B97F4A7C15u;
      x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
      words[i] = (x ^ x >> 27) | 1;
    }
  }
  return (const unsigned char *)(words + offset / 8 % kPeriodWords);
}

double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void need(int ok, const char *what) {
  if (ok) return;
  perror(what);
  exit(1);
}

uint64_t number(const char *text) {
  char *end;
  const uint64_t value = strtoull(text, &end, 10);
  if (end != text && *end == '\0') return value;
  fprintf(stderr, "%s: not a number\n", text);
  exit(2);
}
