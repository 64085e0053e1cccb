// SPDX-License-Identifier: Apache-2.0
// Waiting for a word to change, without libc: no hook sees it and errno stays.
#pragma once

#include <linux/futex.h>
#include <stdint.h>
#include <time.h>

#include "os/syscall.h"

namespace weir::pool {

// Until somebody wakes the word, it is no longer `value`, or `ns` have passed (0: no limit). May return early.
inline long futex_wait(const uint32_t* word, uint32_t value, uint64_t ns = 0) {
  timespec limit{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  return os::system_call(SYS_futex, reinterpret_cast<long>(word), FUTEX_WAIT_PRIVATE, value, ns == 0 ? 0 : reinterpret_cast<long>(&limit));
}
inline void futex_wake(const uint32_t* word, int how_many) {
  os::system_call(SYS_futex, reinterpret_cast<long>(word), FUTEX_WAKE_PRIVATE, how_many);
}

// A lock for threads that hold back their signals. 0 free, 1 held, 2 held and waited for.
class Lock {
 public:
  explicit Lock(uint32_t* word) : word_(word) {
    uint32_t expected = 0;
    if (base::compare_exchange(word_, &expected, 1u)) return;
    while (base::exchange(word_, 2u) != 0) futex_wait(word_, 2);
  }
  ~Lock() {
    if (base::exchange(word_, 0u) == 2) futex_wake(word_, 1);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  uint32_t* word_;
};

}  // namespace weir::pool
