// SPDX-License-Identifier: Apache-2.0
// The accumulators of one process: a hash table of cache lines, one for each file, operation, layer
// and flags.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "reader/weir_reader.h"
#include "wire/format.h"

namespace weir::reader {

// One cache line, so that a record costs at most one miss. key 0: free (a key holds an operation,
// which is never 0).
struct alignas(64) Slot {
  uint64_t key = 0;
  uint64_t calls = 0, bytes = 0, ticks = 0, errors = 0;
  uint64_t first = ~uint64_t{0}, last = 0;
  weir_reader_histogram* histogram = nullptr;
};
static_assert(sizeof(Slot) == 64);

// Key: file in the high half; below it flags, layer and operation as they lie in a record's last
// word.
namespace key {
inline constexpr uint64_t kKindMask = uint64_t{wire::kKeyFlags} << 16 | 0xffff;
constexpr uint64_t of(uint64_t word1, uint64_t word3) {
  return (word1 & ~uint64_t{0xffffffff}) | (word3 >> 32 & kKindMask);
}
constexpr uint64_t of(uint32_t file, uint8_t op, uint8_t layer, uint8_t flags) {
  return uint64_t{file} << 32 | ((uint64_t{flags} << 16 | uint64_t{layer} << 8 | op) & kKindMask);
}
constexpr uint32_t file(uint64_t key) { return uint32_t(key >> 32); }
constexpr uint8_t op(uint64_t key) { return uint8_t(key); }
constexpr uint8_t layer(uint64_t key) { return uint8_t(key >> 8); }
constexpr uint8_t flags(uint64_t key) { return uint8_t(key >> 16); }
}  // namespace key

class SlotTable {
 public:
  // The slot of the key, or the free one where it belongs.
  Slot& at(uint64_t key) {
    for (uint64_t i = home(key);; i = (i + 1) & mask()) {
      Slot& slot = slots_[i];
      if (slot.key == key || slot.key == 0) return slot;
    }
  }

  void prefetch(uint64_t key) const { __builtin_prefetch(&slots_[home(key)], 1); }

  // Larger than the first-level cache: worth asking for slots ahead.
  bool is_large() const { return slots_.size() > 512; }

  // The new slot of a key that at() did not find; slots handed out before move.
  Slot& insert(uint64_t key) {
    if ((used_ + 1) * 2 > slots_.size()) grow();
    Slot& slot = at(key);
    slot.key = key;
    ++used_;
    return slot;
  }

  const std::vector<Slot>& slots() const { return slots_; }
  size_t used() const { return used_; }

 private:
  uint64_t mask() const { return slots_.size() - 1; }
  uint64_t home(uint64_t key) const {
    key *= 0x9e3779b97f4a7c15;
    key ^= key >> 32;
    key *= 0xd6e8feb86659fd93;
    return key >> 32 & mask();
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.key != 0) at(slot.key) = slot;
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(16);
  size_t used_ = 0;
};

}  // namespace weir::reader
