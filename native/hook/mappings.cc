// SPDX-License-Identifier: Apache-2.0
#include "hook/mappings.h"

#include "base/atomic.h"

namespace weir::hook {
namespace {

constexpr uint32_t kPlaces = 4096;
constexpr uint32_t kProbes = 32;
constexpr uint64_t kFileBits = 28;  // an address has 36 bits above its page

// Page number and file in one word, so that both change at once.
constinit uint64_t places[kPlaces] = {};

uint64_t page_of(const void* at) { return reinterpret_cast<uint64_t>(at) >> 12; }
uint32_t first_place(uint64_t page) {
  return static_cast<uint32_t>(page * 0x9e3779b97f4a7c15u >> 52) % kPlaces;
}

}  // namespace

void mapped(const void* at, uint32_t file) {
  if (file == 0 || file >> kFileBits != 0) return;
  const uint64_t page = page_of(at);
  mapped_file(at, true);
  for (uint32_t i = 0, p = first_place(page); i < kProbes; ++i, p = (p + 1) % kPlaces) {
    uint64_t empty = 0;
    if (base::compare_exchange(&places[p], &empty, page << kFileBits | file)) return;
  }
}

uint32_t mapped_file(const void* at, bool forget) {
  const uint64_t page = page_of(at);
  for (uint32_t i = 0, p = first_place(page); i < kProbes; ++i, p = (p + 1) % kPlaces) {
    uint64_t word = base::load(&places[p]);
    if (word == 0 || word >> kFileBits != page) continue;
    if (forget) base::compare_exchange(&places[p], &word, uint64_t{0});
    return static_cast<uint32_t>(word & ((uint64_t{1} << kFileBits) - 1));
  }
  return 0;
}

}  // namespace weir::hook
