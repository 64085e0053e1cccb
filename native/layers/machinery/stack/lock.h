// SPDX-License-Identifier: Apache-2.0
// The lock of a file: one word with the thread that has it. Who comes to it a second time (a signal
// handler within a call on the same file) is notified so instead of waiting for itself.
#pragma once

#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/futex.h"
#include "base/syscall.h"
#include "layers/machinery/stack/file.h"

namespace weir::stack {

extern WEIR_OWN WEIR_THREAD uint32_t own_thread;  // 0: not asked yet; zeroed in a forked child

WEIR_INLINE uint32_t this_thread() {
  if (WEIR_UNLIKELY(own_thread == 0)) own_thread = static_cast<uint32_t>(base::thread_id());
  return own_thread;
}

inline constexpr uint32_t kWaiters = 1u << 31;

WEIR_COLD bool lock_slowly(uint32_t* word, uint32_t me);

// False: this thread has it already.
WEIR_INLINE bool lock_word(uint32_t* word) {
  const uint32_t me = this_thread();
  uint32_t expected = 0;
  if (WEIR_LIKELY(base::compare_exchange(word, &expected, me))) return true;
  return lock_slowly(word, me);
}
WEIR_INLINE void unlock_word(uint32_t* word) {
  if (WEIR_UNLIKELY((base::exchange(word, 0u) & kWaiters) != 0)) base::futex_wake(word, 1);
}

WEIR_INLINE uintptr_t stack_pointer() {
  uintptr_t here;
#if defined(__x86_64__)
  __asm__ volatile("movq %%rsp, %0" : "=r"(here));
#else
  __asm__ volatile("mov %0, sp" : "=r"(here));
#endif
  return here;
}

// Whether a call of this thread whose frame was at `frame` is over: a signal handler jumped out of
// it, so that its frame is no longer there. here: the stack pointer.
WEIR_COLD bool is_left(uintptr_t frame, uintptr_t here);

WEIR_INLINE bool lock(File* f) {
  const uintptr_t here = stack_pointer();
  if (WEIR_UNLIKELY(!lock_word(&f->lock)) && !is_left(f->frame, here)) return false;
  f->frame = here;
  return true;
}
WEIR_INLINE void unlock(File* f) { unlock_word(&f->lock); }
// For threads of weir's own: gives up after some tries at a file that the program is using.
WEIR_COLD bool lock_patiently(File* f);

// A layer that has to wait long (for a request under way) lets others at the file meanwhile: its
// state must be in order, and may be another one afterwards.
class Unlocked {
 public:
  explicit Unlocked(File* f) : file_(f), frame_(f->frame) { unlock(f); }
  ~Unlocked() {
    lock(file_);
    file_->frame = frame_;  // it is the same call still
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  File* file_;
  uintptr_t frame_;
};

}  // namespace weir::stack
