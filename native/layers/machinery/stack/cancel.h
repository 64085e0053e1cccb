// SPDX-License-Identifier: Apache-2.0
// Cancellation points: libc's read, write, open, close and fsync act on a pending pthread_cancel,
// and so do the calls that layers answer. The thread's frames are unwound from here, and no
// destructor runs on the way: a point is passed before anything is locked, and never where libc's
// function is none (syscall(), lseek).
#pragma once

#include "base/atomic.h"
#include "base/compiler.h"

namespace weir::stack {

using TestForCancel = void (*)();
// pthread_testcancel, once the program has called pthread_cancel; null before, so that other
// programs pay a load.
extern WEIR_OWN TestForCancel test_for_cancel;

WEIR_INLINE void cancellation_point() {
  if (const auto test = base::load_relaxed(&test_for_cancel); WEIR_UNLIKELY(test != nullptr))
    test();
}

}  // namespace weir::stack
