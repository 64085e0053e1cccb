// SPDX-License-Identifier: Apache-2.0
#include "record/counter_index.h"

#include "os/syscall.h"

namespace weir::record {
namespace {

constexpr uint64_t kFirstSlots = 255;  // a page

uint64_t bytes_for(uint64_t slots) { return sizeof(CounterIndex) + slots * sizeof(CounterIndex::Slot); }

}  // namespace

CounterIndex::Slot* find_slot(CounterIndex* index, uint64_t key) {
  uint64_t at = (key * 0x9e3779b97f4a7c15u >> 20) % index->slots;
  while (index->slot[at].key != 0 && index->slot[at].key != key) at = at + 1 == index->slots ? 0 : at + 1;
  return &index->slot[at];
}

CounterIndex* grow_index(CounterIndex* index) {
  if (index != nullptr && index->filled < index->slots / 4 * 3) return index;
  const uint64_t slots = index == nullptr ? kFirstSlots : index->slots * 2 + 1;
  const long memory = os::map(bytes_for(slots), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (os::failed(memory)) return nullptr;
  auto* bigger = reinterpret_cast<CounterIndex*>(memory);
  bigger->slots = slots;
  if (index == nullptr) return bigger;
  bigger->filled = index->filled;
  for (uint64_t i = 0; i < index->slots; ++i) {
    if (index->slot[i].key != 0) *find_slot(bigger, index->slot[i].key) = index->slot[i];
  }
  forget_index(index);
  return bigger;
}

void forget_index(CounterIndex* index) {
  if (index != nullptr) os::unmap(index, bytes_for(index->slots));
}

}  // namespace weir::record
