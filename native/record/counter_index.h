// SPDX-License-Identifier: Apache-2.0
// Finds the counter of (file, operation, flags) in one log. Memory of its own, grown with signals held back.
#pragma once

#include <stdint.h>

#include "wire/format.h"

namespace weir::record {

struct CounterIndex {
  struct Slot {
    uint64_t key;  // 0 empty
    wire::Counter* counter;
  };
  uint64_t slots;
  uint64_t filled;
  Slot slot[];
};

// The slot of the key: its own, or the empty one where it belongs.
CounterIndex::Slot* find_slot(CounterIndex* index, uint64_t key);
// Room for one more key. Null without memory, or when a full index cannot grow.
CounterIndex* grow_index(CounterIndex* index);
void forget_index(CounterIndex* index);

}  // namespace weir::record
