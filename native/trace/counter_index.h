// SPDX-License-Identifier: Apache-2.0
// Finds an entry of one log, a counter or a histogram, by its first word, which is its key. Memory
// of its own, changed with the thread's signals held back and read without: an index that was grown
// stays readable, and a key that a signal handler has just added is at worst not seen.
#pragma once

#include <stdint.h>

#include "base/atomic.h"

namespace weir::trace {

struct CounterIndex {
  uint32_t bits;  // 2^bits slots, at least a quarter of them empty
  uint32_t filled;
  CounterIndex* older;  // half as large, no longer filled
  uint64_t slot[];      // 0: empty; 16 bits of the key's hash, 48 bits of the entry's address
};

inline constexpr uint64_t kAddressBits = (uint64_t{1} << 48) - 1;
inline uint64_t hash_of(uint64_t key) { return key * 0x9e3779b97f4a7c15u; }
// For the most part not the bits that place it.
inline uint64_t tag_of(uint64_t hash) { return hash << 16 & ~kAddressBits; }
inline uint64_t* entry_of(uint64_t slot) {
  return reinterpret_cast<uint64_t*>(slot & kAddressBits);
}

// The slot of the key: its own, or the empty one where it belongs.
inline uint64_t* find_slot(CounterIndex* index, uint64_t key) {
  const uint64_t last = (uint64_t{1} << index->bits) - 1;
  const uint64_t hash = hash_of(key), tag = tag_of(hash);
  for (uint64_t at = hash >> (64 - index->bits);; at = (at + 1) & last) {
    const uint64_t slot = base::load_relaxed(&index->slot[at]);
    if (slot == 0) return &index->slot[at];
    if ((slot ^ tag) <= kAddressBits && *entry_of(slot) == key) return &index->slot[at];
  }
}

// The entry of the key, or null.
inline uint64_t* find_entry(CounterIndex* index, uint64_t key) {
  return entry_of(*find_slot(index, key));
}

// Adds an entry whose key is not there. before: its first word is the key, and grow_index has made
// room for it.
inline void insert(CounterIndex* index, uint64_t* entry) {
  const uint64_t slot = tag_of(hash_of(*entry)) | reinterpret_cast<uint64_t>(entry);
  base::store(find_slot(index, *entry), slot);
  ++index->filled;
}

// Room for one more key. Null without memory, or when a full index cannot grow.
CounterIndex* grow_index(CounterIndex* index);
void forget_index(CounterIndex* index);
// before: no call of the thread looks into what the index has outgrown.
void forget_older(CounterIndex* index);

}  // namespace weir::trace
