// SPDX-License-Identifier: Apache-2.0
// A word in shared memory by which a process beside the program shows that it lives: the kernel
// marks it when the thread that began it ends, however it ends (robust futex). One for a thread.
#pragma once

#include <linux/futex.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/process.h"
#include "base/syscall.h"

namespace weir::node {

inline bool beats(uint32_t word) {
  return (word & FUTEX_TID_MASK) != 0 && (word & FUTEX_OWNER_DIED) == 0;
}

// The list that the kernel reads at the thread's end (set_robust_list(2)).
struct RobustList {
  void* next;
  long futex_offset;
  void* pending;
};

// What the kernel marks: `*next` lies in the same mapping as the word, and stays there.
inline void announce_pulse(RobustList* list, uint32_t* word, void** next) {
  *next = list;
  *list = {next, reinterpret_cast<char*>(word) - reinterpret_cast<char*>(next), nullptr};
  base::system_call(SYS_set_robust_list, reinterpret_cast<long>(list), sizeof *list);
}

}  // namespace weir::node
