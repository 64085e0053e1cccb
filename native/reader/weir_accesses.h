/* SPDX-License-Identifier: Apache-2.0 */
/* C ABI of libweir-reader.so, continued: how the ranks of a step access its files, joined from its
 * trace files. */
#ifndef WEIR_ACCESSES_H
#define WEIR_ACCESSES_H
#include "reader/weir_spread.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_accesses weir_accesses;

typedef struct { /* a name that the trace file lost: the number that stands for it */
  uint32_t process, file;
  int32_t name;
  uint32_t reserved;
} weir_accesses_lost;

/* A trace file. alignment, names: of each of its texts, in the order of the array texts; of a lost
 * name blocks have 4,096 bytes. ranks, chosen: of each process the number of its rank, and whether
 * it is looked at. lost: by process, then file. */
typedef struct {
  weir_reader *reader;
  weir_reader_clock clock;
  const weir_reader_alignment *alignment;
  const int32_t *names, *ranks;
  const uint8_t *chosen;
  const weir_accesses_lost *lost;
  uint64_t lost_count;
} weir_accesses_file;

/* apart: by number of a name, 1: its files have other names, too, so that their ranks are not known
 * here; loose: rising numbers of ranks that have processes in several trace files. by_rank: rows
 * stay apart.
 * Common values are looked over each time that more than added_at_once, and more than were left the
 * time before, came. Once there are more than most_values different ones then, only the kept[0]
 * most common of each name, direction and kind (size or stride) stay; if these are too many, too,
 * kept[1]. */
typedef struct {
  const uint8_t *apart;
  uint64_t apart_count;
  const int32_t *loose;
  uint64_t loose_count;
  uint64_t most_values, added_at_once, kept[2];
  uint32_t all_names, by_rank, threads, reserved;
} weir_accesses_choice;

/* Transfers of one direction (way: 0 reads, 1 writes) by all ranks on one file, or (by_rank) by one
 * process. name: -1 no file. rank, node, block, stripe: of the first process; node: index of the
 * trace file. again: bytes that moved more than once, as far as offsets are known. The others are
 * those of weir_reader_access. */
typedef struct {
  int64_t calls, bytes, sequential, consecutive, first, adjacent, strided, backward, random,
      unknown, off_block, off_stripe, ns, again, switches, begin, end, longest_ns, block, stripe;
  int32_t name, rank, way, node;
} weir_accesses_row;

/* A common size or stride. key: twice the number of a name, and 1 for writes; by_rank: the index of
 * a row. value: of a stride, below 0: backward. */
typedef struct {
  int64_t key, is_stride, value, count;
} weir_accesses_common;

/* Reads all records of the files, some of them at once on so many threads. before: the chunks of
 * each have their times (weir_reader_scan or weir_reader_times); nobody else asks for accesses of
 * these readers.
 * Ends early where a file has lost names that `lost` does not have: *has_lost is 1 then.
 * fails: NULL: no memory, or no threads. */
weir_accesses *weir_accesses_create(const weir_accesses_file *files, uint64_t count,
                                    const weir_accesses_choice *choice, uint32_t *has_lost);
void weir_accesses_destroy(weir_accesses **accesses);

/* What was found; *count: how many entries. In no order, but for by_rank: by trace file, direction
 * and process then. */
const weir_accesses_row *weir_accesses_rows(const weir_accesses *accesses, uint64_t *count);
const weir_accesses_common *weir_accesses_commons(const weir_accesses *accesses, uint64_t *count);
/* What differs between ranks: of names that are not apart; and rows that wait until it is known
 * which file they are of. Not by_rank. */
const weir_spread_file *weir_accesses_spread(const weir_accesses *accesses, uint64_t *count);
const weir_spread_row *weir_accesses_kept(const weir_accesses *accesses, uint64_t *count);

#ifdef __cplusplus
}
#endif
#endif
