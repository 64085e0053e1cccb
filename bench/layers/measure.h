/* SPDX-License-Identifier: Apache-2.0
 * What the programs of the layers' bench share: known contents, a clock, messages. */
#ifndef WEIR_BENCH_MEASURE_H
#define WEIR_BENCH_MEASURE_H

#include <stddef.h>
#include <stdint.h>

enum { kPeriodWords = 1000003, kLargestPiece = 8 << 20 };

/* The bytes that a file has from this offset on, `kLargestPiece` of them: no bytes are made where
 * time is measured. Contents repeat after a prime number of words, so that a block in the place of
 * another is seen. The offset is a multiple of 8. */
const unsigned char *contents_at(uint64_t offset);

double now_s(void);

/* Ends the program with perror's message when not ok. */
void need(int ok, const char *what);

/* A number of the command line; ends the program when it is none. */
uint64_t number(const char *text);

#endif
