// SPDX-License-Identifier: Apache-2.0
// The lock of a table, which one thread at a time holds for a few instructions.
#pragma once

#include "base/lock.h"

namespace weir::stack {

template <uint32_t* kWord>
struct BusyWith : base::Locked {
  BusyWith() : base::Locked(kWord) {}
};

}  // namespace weir::stack
