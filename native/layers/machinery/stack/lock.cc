// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/stack/lock.h"

#include <signal.h>

namespace weir::stack {

WEIR_THREAD uint32_t own_thread;

// Stacks grow downwards: a handler on the same stack stands below what it interrupted, and one on a
// stack of its own is known to the kernel. The layers are as the jump left them.
bool is_left(uintptr_t frame, uintptr_t here) {
  // One hook lies deeper below its caller than another; what the kernel lays on the stack for a
  // handler is larger than that.
  constexpr uintptr_t kDeeper = 1024;
  if (here + kDeeper < frame) return false;
  stack_t about{};
  if (base::system_call(SYS_sigaltstack, 0, reinterpret_cast<long>(&about)) != 0) return false;
  return (about.ss_flags & SS_ONSTACK) == 0;
}

bool lock_patiently(File* f) {
  constexpr int kTries = 50;
  for (int i = 0; i < kTries; ++i) {
    uint32_t nobody = 0;
    if (base::compare_exchange(&f->lock, &nobody, this_thread())) return true;
    base::yield();
  }
  return false;
}

bool lock_slowly(uint32_t* word, uint32_t me) {
  constexpr int kTurns = 100;  // a call served from memory is over by then
  constexpr uint64_t kLookNs = 20'000'000;  // whether the owner has not been cancelled
  for (int i = 0; i < kTurns; ++i) {
    uint32_t seen = base::load_relaxed(word);
    if ((seen & ~kWaiters) == me) return false;
    if (seen == 0 && base::compare_exchange(word, &seen, me)) return true;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  for (;;) {
    uint32_t seen = base::load_relaxed(word);
    if (seen == 0) {
      if (base::compare_exchange(word, &seen, me | kWaiters)) return true;  // others may still wait
      continue;
    }
    if ((seen & kWaiters) == 0 && !base::compare_exchange(word, &seen, seen | kWaiters)) continue;
    seen |= kWaiters;
    const long why = base::futex_wait(word, seen, kLookNs);
    if (why != -ETIMEDOUT ||
        base::system_call(SYS_tgkill, base::process_id(), seen & ~kWaiters, 0) != -ESRCH)
      continue;
    if (base::compare_exchange(word, &seen, me | kWaiters))
      return true;  // the layers are as the thread left them
  }
}

}  // namespace weir::stack
