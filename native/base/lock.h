// SPDX-License-Identifier: Apache-2.0
// The lock among threads of this process, held for a scope, which is a section (base/section.h): no
// handler comes to a lock that its own thread has, and none leaves one held by a jump. Two others
// say more of their owner, for those who wait: that of a file (layers/machinery/stack/lock.h),
// which tells a handler that its own thread has it, and that in memory which processes share
// (layers/machinery/node/lock.h), whose owner may be dead.
#pragma once

#include <stdint.h>

#include "base/atomic.h"
#include "base/futex.h"
#include "base/section.h"

namespace weir::base {

// 0 free, 1 held, 2 held and waited for. In a forked child whoever owns the word makes it 0.
// Not recursive: a thread that takes a word twice waits for itself. Never fails, and waits without
// limit, so what is done under it is short and calls nothing that waits. Cost without contention:
// that of the section, and none for the word.
class Locked {
 public:
  explicit Locked(uint32_t* word) : word_(word) {
    uint32_t expected = 0;
    if (base::compare_exchange(word_, &expected, 1u)) return;
    while (base::exchange(word_, 2u) != 0) futex_wait(word_, 2);
  }
  ~Locked() {
    if (base::exchange(word_, 0u) == 2) futex_wake(word_, 1);
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  const Section section_;  // begins before the word is taken, ends when it is free
  uint32_t* word_;
};

}  // namespace weir::base
