// SPDX-License-Identifier: Apache-2.0
#include "trace/counter_index.h"

#include "base/syscall.h"

namespace weir::trace {
namespace {

constexpr uint32_t kFirstBits = 7;

uint64_t slots_of(uint32_t bits) { return uint64_t{1} << bits; }
uint64_t bytes_for(uint32_t bits) {
  return sizeof(CounterIndex) + slots_of(bits) * sizeof(uint64_t);
}

}  // namespace

CounterIndex* grow_index(CounterIndex* index) {
  if (index != nullptr && index->filled < slots_of(index->bits) / 4 * 3) return index;
  const uint32_t bits = index == nullptr ? kFirstBits : index->bits + 1;
  const long memory =
      base::map(bytes_for(bits), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (base::failed(memory)) return nullptr;
  auto* bigger = reinterpret_cast<CounterIndex*>(memory);
  bigger->bits = bits;
  bigger->older = index;
  if (index == nullptr) return bigger;
  for (uint64_t i = 0; i < slots_of(index->bits); ++i) {
    if (index->slot[i] != 0) insert(bigger, entry_of(index->slot[i]));
  }
  return bigger;
}

void forget_index(CounterIndex* index) {
  while (index != nullptr) {
    CounterIndex* const older = index->older;
    base::unmap(index, bytes_for(index->bits));
    index = older;
  }
}

void forget_older(CounterIndex* index) {
  CounterIndex* const older = index->older;
  index->older = nullptr;
  forget_index(older);
}

}  // namespace weir::trace
