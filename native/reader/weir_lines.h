/* SPDX-License-Identifier: Apache-2.0 */
/* C ABI of libweir-reader.so, continued: lines of many ranks at once, each at few timestamps. One
 * call for each line would cost more than its records. */
#ifndef WEIR_LINES_H
#define WEIR_LINES_H
#include "reader/weir_reader.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Timestamps: those of line i are at_ns[first[i]] ... at_ns[first[i + 1] - 1], in any order.
 * lengths: by figure (WEIR_READER_LINE_...) one for each of them; NULL: not wanted. */
typedef struct {
  const int64_t *at_ns;
  const uint64_t *first;
  int64_t *lengths[WEIR_READER_LINE_FIGURES];
} weir_reader_side;

/* members, callers: of line i from first_member[i] and first_caller[i] on, as in weir_reader_line.
 */
typedef struct {
  uint64_t count;
  const weir_reader_member *members;
  const uint64_t *first_member;
  const uint32_t *callers;
  const uint64_t *first_caller;
  const weir_reader_side *sides;
  uint64_t sides_count;
  uint64_t room; /* as in weir_reader_line */
} weir_reader_lines;

/* Lengths at the timestamps of all sides, as weir_reader_line_lengths() finds them. cost: a pass
 * over the records of each line that is asked; memory: for the timestamps of one line. fails: -1
 * when memory ran out. */
int weir_reader_lines_lengths(const weir_reader_lines *lines);

#ifdef __cplusplus
}
#endif
#endif
