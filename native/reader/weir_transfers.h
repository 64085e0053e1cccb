/* SPDX-License-Identifier: Apache-2.0 */
/* C ABI of libweir-reader.so, continued: transfers of files, one by one, with the offsets of C
 * streams, which their records do not have. */
#ifndef WEIR_TRANSFERS_H
#define WEIR_TRANSFERS_H
#include "reader/weir_reader.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_transfers weir_transfers;

/* Columns, arrays of the caller. begin_ns: since 1970; offset: -1 unknown; text: index in
 * WEIR_READER_TEXTS; way: 0 read, 1 written. */
typedef struct {
  int64_t *begin_ns, *length_ns, *offset, *bytes;
  uint32_t *process, *text;
  uint8_t *way;
} weir_transfer_columns;

/* The reads and writes at the lowest level seen of chosen processes (a byte each) on files of
 * wanted texts (a byte each), process by process in the order in which they ended. The reader and
 * both arrays must outlive it. before: weir_reader_scan or weir_reader_times. cost: one pass over
 * the records of chosen processes that name a wanted text; memory for the files of one. fails:
 * NULL: no memory. */
weir_transfers *weir_transfers_create(const weir_reader *reader, const weir_reader_clock *clock,
                                      const uint8_t *wanted, const uint8_t *chosen);
/* The next ones, at most `room`, into *rows; fewer: these were the last. fails: -1: no memory. */
int weir_transfers_next(weir_transfers *transfers, uint64_t room, const weir_transfer_columns *out,
                        uint64_t *rows);
void weir_transfers_destroy(weir_transfers **transfers);

#ifdef __cplusplus
}
#endif
#endif
