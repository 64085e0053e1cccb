/* SPDX-License-Identifier: Apache-2.0 */
#include "sum.h"

#include <string.h>

static uint64_t mixed(uint64_t state, uint64_t word) {
  state = (state << 29 | state >> 35) ^ word;
  return state * 0x9e3779b97f4a7c15u;
}

void fdv_sum_add(fdv_sum *sum, const void *data, int64_t bytes) {
  const unsigned char *at = data, *end = at + bytes;
  uint64_t state = (uint64_t)sum->state, word = (uint64_t)sum->word;
  sum->bytes += bytes;
  while (at < end) {
    if (sum->fill == 0 && end - at >= 8) {
      uint64_t whole;
      memcpy(&whole, at, 8);
      state = mixed(state, whole);
      at += 8;
      continue;
    }
    word |= (uint64_t)*at++ << (8 * sum->fill);
    if (++sum->fill == 8) {
      state = mixed(state, word);
      word = 0;
      sum->fill = 0;
    }
  }
  sum->state = (int64_t)state;
  sum->word = (int64_t)word;
}

int64_t fdv_sum_value(const fdv_sum *sum) {
  uint64_t state = mixed((uint64_t)sum->state, (uint64_t)sum->word);
  state = mixed(state, (uint64_t)sum->bytes);
  return (int64_t)(state ^ state >> 31);
}
