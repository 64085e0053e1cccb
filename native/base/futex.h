// SPDX-License-Identifier: Apache-2.0
// Waiting for a word to change, without libc: no hook sees it and errno stays. kShared: in memory
// that other processes map, too.
#pragma once

#include <linux/futex.h>
#include <stdint.h>
#include <time.h>

#include "base/syscall.h"

namespace weir::base {

enum class Word : long { kOwn = FUTEX_PRIVATE_FLAG, kShared = 0 };

// Until somebody wakes the word, it is no longer `value`, or `ns` have passed (0: no limit). May
// return early. 0: woken; -EAGAIN: it was another value already; -ETIMEDOUT; -EINTR: a signal came.
// Who waits checks the word again. Threads: any; in a signal handler only where its own thread
// cannot be the one that has to wake it. Cost: a system call, in futex_wake too.
inline long futex_wait(const uint32_t* word, uint32_t value, uint64_t ns = 0,
                       Word where = Word::kOwn) {
  timespec limit{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  return system_call(SYS_futex, reinterpret_cast<long>(word), FUTEX_WAIT | static_cast<long>(where),
                     value, ns == 0 ? 0 : reinterpret_cast<long>(&limit));
}
inline void futex_wake(const uint32_t* word, int how_many, Word where = Word::kOwn) {
  system_call(SYS_futex, reinterpret_cast<long>(word), FUTEX_WAKE | static_cast<long>(where),
              how_many);
}

}  // namespace weir::base
