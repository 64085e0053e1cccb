/* SPDX-License-Identifier: Apache-2.0
 * A running checksum of a stream of bytes. The value depends on the bytes and their order alone,
 * not on how they were cut into requests; every single changed byte changes it, because each mixing
 * step is a bijection. */
#ifndef FDV_SUM_H
#define FDV_SUM_H

#include <stdint.h>

typedef struct {
  int64_t state, bytes, word;
  int32_t fill, unused;
} fdv_sum;

void fdv_sum_add(fdv_sum *sum, const void *data, int64_t bytes);
int64_t fdv_sum_value(const fdv_sum *sum);

#endif
