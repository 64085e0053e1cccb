// SPDX-License-Identifier: Apache-2.0
// Where in a list each key is: a hash table of places. The keys lie in the list alone.
#pragma once

#include <cstdint>

#include "reader/spill.h"

namespace weir::reader {

inline uint64_t hash_of(uint64_t a, uint64_t b) {
  uint64_t mixed = (a * 0x9e3779b97f4a7c15u) ^ b;
  mixed = (mixed ^ mixed >> 32) * 0xd6e8feb86659fd93u;
  return mixed ^ mixed >> 32;
}

class PlaceTable {
 public:
  // The place of the key with this hash: one that has_key() says yes to; or else `next`, which is
  // its place from now on.
  template <class HasKey>
  uint32_t find_or_add(uint64_t hash, uint32_t next, HasKey has_key) {
    if ((used_ + 1) * 2 > slots_.size()) grow();
    uint64_t slot = hash & mask();
    for (; slots_[slot].place != kFree; slot = (slot + 1) & mask()) {
      if (slots_[slot].hash == uint32_t(hash) && has_key(slots_[slot].place))
        return slots_[slot].place;
    }
    slots_[slot] = {uint32_t(hash), next};
    ++used_;
    return next;
  }

  // The slot of this hash will be looked at soon.
  void prefetch(uint64_t hash) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[hash & mask()]);
  }

  void clear() {
    slots_ = {};
    used_ = 0;
  }

 private:
  static constexpr uint32_t kFree = ~uint32_t{0};
  struct Slot {
    uint32_t hash = 0, place = kFree;
  };

  uint64_t mask() const { return slots_.size() - 1; }

  void grow() {
    SpillVector<Slot> old(slots_.empty() ? 64 : slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& one : old) {
      if (one.place == kFree) continue;
      uint64_t slot = one.hash & mask();
      while (slots_[slot].place != kFree) slot = (slot + 1) & mask();
      slots_[slot] = one;
    }
  }

  SpillVector<Slot> slots_;
  size_t used_ = 0;
};

}  // namespace weir::reader
