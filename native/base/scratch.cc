// SPDX-License-Identifier: Apache-2.0
#include "base/scratch.h"

#include "base/atomic.h"

namespace weir::base {
namespace {

// A thread has up to four at once, also while it waits for requests of another one: of too few, a
// name would be taken for one that no rule is about. Memory is taken by those that were ever used.
constexpr int kRooms = 1024;
constexpr int kPatience = 1000;
constinit uint32_t taken[kRooms] = {};
constinit char rooms[kRooms][Scratch::kBytes] = {};

}  // namespace

Scratch::Scratch(bool even_sealed) {
  if (sealed() && !even_sealed) return;
  for (int attempt = 0; attempt < kPatience; ++attempt) {
    for (int i = 0; i < kRooms; ++i) {
      if (base::load_relaxed(&taken[i]) != 0 || base::exchange(&taken[i], 1u) != 0) continue;
      data_ = rooms[i];
      return;
    }
    yield();
  }
}

Scratch::~Scratch() {
  if (data_ != nullptr) base::store(&taken[(data_ - rooms[0]) / static_cast<long>(kBytes)], 0u);
}

void Scratch::free_all() {
  for (uint32_t& one : taken) base::store(&one, 0u);
}

}  // namespace weir::base
