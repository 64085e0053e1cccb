/* SPDX-License-Identifier: Apache-2.0 */
/* C ABI of libweir-reader.so, continued: what differs between the ranks of a file, accumulated
 * trace file by trace file, without a row for each rank and file. */
#ifndef WEIR_SPREAD_H
#define WEIR_SPREAD_H
#include "reader/weir_reader.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_spread weir_spread;

/* Which of its figures a row adds to. */
enum { WEIR_SPREAD_RANKS = 1, WEIR_SPREAD_INTERLEAVED = 2 };

/* Transfers of one direction (way) of one process on one file. begin, end: the range of bytes that
 * moved; the same where it is not known. */
typedef struct {
  int64_t ns, bytes, begin, end;
  int32_t name, way, rank, node, counts, reserved;
} weir_spread_row;

/* A file and direction. interleaved: ranks whose range of bytes begins before that of another rank
 * of their node ends, and the other way round. fastest, slowest: by ns; of equal ones the lowest
 * rank. mean, squares: of the ranks' sums, and squares of the distances to it. */
typedef struct {
  int64_t ranks, interleaved, fastest_rank, fastest_ns, slowest_rank, slowest_ns;
  double mean_ns, squares_ns, mean_bytes, squares_bytes;
  int32_t name, way;
} weir_spread_file;

/* fails: NULL: no memory. */
weir_spread *weir_spread_create(void);
void weir_spread_destroy(weir_spread **spread);

/* All rows of the ranks among them, of one node or several. fails: -1 when memory ran out. */
int weir_spread_add(weir_spread *spread, const weir_spread_row *rows, uint64_t count);

/* What another one has found, of other ranks. fails: likewise. */
int weir_spread_join(weir_spread *spread, const weir_spread_file *files, uint64_t count);

/* One for each file and direction, in no order; *count: how many they are. They hold until more are
 * added. */
const weir_spread_file *weir_spread_get(const weir_spread *spread, uint64_t *count);

#ifdef __cplusplus
}
#endif
#endif
