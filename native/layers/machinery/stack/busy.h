// SPDX-License-Identifier: Apache-2.0
// The locks of tables, each of which one thread at a time holds for a few instructions. In a forked
// child all of them are free: a thread of the parent that held one is not there.
#pragma once

#include "base/compiler.h"
#include "base/lock.h"

// Defines such a lock, and enters it in the section that free_busy() goes through.
#define WEIR_BUSY(word)        \
  constinit uint32_t word = 0; \
  [[gnu::section("weir_busy"), gnu::used]] static uint32_t* word##_entry = &(word)

// The linker's: the beginning and the end of that section.
extern "C" {
extern WEIR_OWN uint32_t* __start_weir_busy[];  // NOLINT(bugprone-reserved-identifier)
extern WEIR_OWN uint32_t* __stop_weir_busy[];   // NOLINT(bugprone-reserved-identifier)
}

namespace weir::stack {

template <uint32_t* kWord>
struct BusyWith : base::Locked {
  BusyWith() : base::Locked(kWord) {}
};

// In a forked child, before anything that takes one.
inline void free_busy() {
  for (uint32_t** at = __start_weir_busy; at != __stop_weir_busy; ++at) base::store(*at, 0u);
}

}  // namespace weir::stack
