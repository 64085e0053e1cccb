/* SPDX-License-Identifier: Apache-2.0 */
/* C ABI of libweir-reader.so, continued: the common values (weir_reader_common) of many trace
 * files, added up by file name in bounded memory. */
#ifndef WEIR_COMMONS_H
#define WEIR_COMMONS_H
#include "reader/weir_reader.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_commons weir_commons;

/* Values are looked over each time that more than added_at_once, and more than were left the time
 * before, came. Once there are more than `most` different ones then, only the kept[0] most common
 * of each name, direction and kind (size or stride) stay; if these are too many, too, kept[1]. */
typedef struct {
  uint64_t most, added_at_once;
  uint64_t kept[2];
} weir_commons_limits;

/* key: twice the number of a name, and 1 for writes; value: of a stride, below 0: backward. */
typedef struct {
  int64_t key, is_stride, value, count;
} weir_commons_value;

/* fails: NULL: no memory. */
weir_commons *weir_commons_create(const weir_commons_limits *limits);
void weir_commons_destroy(weir_commons **commons);

/* Rows of one trace file, of which those of one direction (0: reads) count. names: by access.
 * fails: -1 when memory ran out. */
int weir_commons_add(weir_commons *commons, const weir_reader_common *rows, uint64_t count,
                     const int32_t *names, uint32_t way);

/* Whether values were left out. */
uint32_t weir_commons_is_full(const weir_commons *commons);

/* Looks values over, and gives all that were kept, each once; *count: how many they are. They hold
 * until more are added. fails: NULL: no memory. */
const weir_commons_value *weir_commons_get(weir_commons *commons, uint64_t *count);

#ifdef __cplusplus
}
#endif
#endif
