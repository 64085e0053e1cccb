// SPDX-License-Identifier: Apache-2.0
// Finds the counter of (file, operation, flags) in one log. Memory of its own, changed with the thread's signals held back; found in
// without: an index that was grown stays readable, and a key that a signal handler has just added is at worst not seen.
#pragma once

#include <stdint.h>

#include "wire/format.h"

namespace weir::record {

struct CounterIndex {
  struct Slot {
    uint64_t key;  // 0 empty
    wire::Counter* counter;
  };
  uint32_t bits;  // 2^bits slots, at least a quarter of them empty
  uint32_t filled;
  CounterIndex* older;  // half as large, no longer filled
  Slot slot[];
};

// The slot of the key: its own, or the empty one where it belongs.
inline CounterIndex::Slot* find_slot(CounterIndex* index, uint64_t key) {
  const uint64_t last = (uint64_t{1} << index->bits) - 1;
  uint64_t at = key * 0x9e3779b97f4a7c15u >> (64 - index->bits);
  while (index->slot[at].key != 0 && index->slot[at].key != key) at = (at + 1) & last;
  return &index->slot[at];
}

// Room for one more key. Null without memory, or when a full index cannot grow.
CounterIndex* grow_index(CounterIndex* index);
void forget_index(CounterIndex* index);

}  // namespace weir::record
