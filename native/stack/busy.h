// SPDX-License-Identifier: Apache-2.0
// A word that one thread at a time holds for a few instructions, its signals held back so that no handler waits for it.
#pragma once

#include <stdint.h>

#include "base/atomic.h"
#include "os/syscall.h"

namespace weir::stack {

template <uint32_t* kWord>
struct BusyWith {
  BusyWith() {
    while (base::exchange(kWord, 1u) != 0) os::yield();
  }
  ~BusyWith() { base::store(kWord, 0u); }
  BusyWith(const BusyWith&) = delete;
  BusyWith& operator=(const BusyWith&) = delete;

  const os::SignalsBlocked blocked;  // begins before the word is taken, ends when it is free
};

}  // namespace weir::stack
