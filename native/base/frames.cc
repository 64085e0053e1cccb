// SPDX-License-Identifier: Apache-2.0
#include "base/frames.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>

#include "base/scratch.h"
#include "base/syscall.h"
#include "base/valgrind.h"

extern "C" void* __libc_stack_end;  // of the dynamic linker: where the stack of main() begins

namespace weir::base {
namespace {

constexpr uintptr_t kDeepest = 4u << 20;
constexpr uintptr_t kPiece = 512;

uintptr_t thread_pointer() {
  uintptr_t at;
#if defined(__x86_64__)
  __asm__("movq %%fs:0, %0" : "=r"(at));
#else
  __asm__("mrs %0, tpidr_el0" : "=r"(at));
#endif
  return at;
}

// Whether the word may belong to the registers that the kernel saved for a handler. *before: the
// word before it.
bool is_saved_state(uint64_t word, uint64_t before) {
#if defined(__x86_64__)
  // struct sigcontext: the code segment of user programs (with the stack segment since Linux 4.6),
  // the flags before it: bit 1 is always set, interrupts are always enabled, nothing is above
  // bit 21.
  constexpr uint64_t kCode = 0x33, kStack = uint64_t{0x2b} << 48, kAlways = 0x202;
  return (word == kCode || word == (kCode | kStack)) && (before & kAlways) == kAlways &&
         before >> 22 == 0;
#elif defined(__aarch64__)
  (void)before;
  return word ==
         (uint64_t{0x210} << 32 |
          0x46508001);  // the first extension of struct sigcontext: floating point, with its size
#else
#error "weir knows the signal frames of x86-64 and of aarch64"
#endif
}

// The mask of the program itself: weir may block all signals for a moment.
uint64_t own_mask() {
  if (signals_blocked == 1) return signals_before;
  uint64_t mask = ~uint64_t{0};
  system_call(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, 0, reinterpret_cast<long>(&mask), sizeof mask);
  return mask;
}

// Whether a handler of the program may run without its own signal blocked.
bool any_without_defer() {
  constexpr uint64_t kNoDefer = 0x40000000;
  for (int signal = 1; signal <= 64; ++signal) {
    uint64_t action[4] = {};  // handler, flags, restorer, mask
    if (system_call(SYS_rt_sigaction, signal, 0, reinterpret_cast<long>(action),
                    sizeof(uint64_t)) < 0 ||
        (action[1] & kNoDefer) != 0)
      return true;
  }
  return false;
}

// Whether the handler that the saved state at this address belongs to may be running. A buffer that
// a function never writes to has what was on the stack before: the state that an ended handler
// left. While a handler runs, more signals are blocked than before it: its own.
bool may_be_running(uintptr_t at) {
#if defined(__x86_64__)
  constexpr uintptr_t kMask = 112;  // from the segments to uc_sigmask of struct ucontext
  uint64_t saved = 0;
  iovec to{&saved, sizeof saved};
  iovec from{reinterpret_cast<void*>(at + kMask), sizeof saved};
  return system_call(SYS_process_vm_readv, thread_id(), reinterpret_cast<long>(&to), 1,
                     reinterpret_cast<long>(&from), 1, 0) != sizeof saved ||
         (own_mask() & ~saved) != 0 || any_without_defer();
#else
  (void)at;
  return true;
#endif
}

// Which remains of handlers count: all, or those whose handler may be running.
enum class Which { kAll, kRunning };

// at: where the words lie, of which these may be a copy.
bool any_saved_state(const uint64_t* words, uintptr_t bytes, uintptr_t at, uint64_t* before,
                     Which which) {
  const valgrind::Unreported unreported;  // most of a stack was never written to
  for (const uint64_t* const end = words + bytes / sizeof *words; words < end; ++words) {
    const uint64_t word = base::load_relaxed(words);
    if (is_saved_state(word, *before) && (which == Which::kAll || may_be_running(at))) return true;
    *before = word;
    at += sizeof word;
  }
  return false;
}

bool search(Which which) {
  if (sealed()) return true;
  const uintptr_t here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) & ~uintptr_t{7};
  uint64_t before = 0;
  const auto main_end = reinterpret_cast<uintptr_t>(__libc_stack_end) & ~uintptr_t{7};
  if (main_end - here < kDeepest)
    return any_saved_state(reinterpret_cast<const uint64_t*>(here), main_end - here, here, &before,
                           which);
  // A thread's storage lies at the end of its stack. Another stack below it may end anywhere, and
  // what follows it may go at any time: so the kernel copies.
  const uintptr_t end = thread_pointer() & ~uintptr_t{7};
  if (end - here >= kDeepest) return true;
  const int thread = thread_id();  // the process' first one may be gone
  for (uintptr_t at = here; at < end; at += kPiece) {
    uint64_t words[kPiece / sizeof(uint64_t)];
    const uintptr_t bytes = end - at < kPiece ? end - at : kPiece;
    iovec to{words, bytes}, from{reinterpret_cast<void*>(at), bytes};
    const long got = system_call(SYS_process_vm_readv, thread, reinterpret_cast<long>(&to), 1,
                                 reinterpret_cast<long>(&from), 1, 0);
    if (got != static_cast<long>(bytes) || any_saved_state(words, bytes, at, &before, which))
      return true;
  }
  return false;
}

}  // namespace

bool may_be_in_handler() { return search(Which::kAll); }

bool may_be_in_handler_on_any_stack() {
  constexpr uintptr_t kDeepestOwn = 1u << 30, kForeign = 1u << 20, kAtOnce = 8192;
  if (sealed()) return true;
  const uintptr_t here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) & ~uintptr_t{7};
  const auto main_end = reinterpret_cast<uintptr_t>(__libc_stack_end) & ~uintptr_t{7};
  if (main_end - here < kDeepest) return search(Which::kRunning);
  stack_t about{};
  system_call(SYS_sigaltstack, 0, reinterpret_cast<long>(&about));
  if ((about.ss_flags & SS_ONSTACK) != 0) return true;
  const Scratch room;
  if (room.data() == nullptr) return true;
  const int thread = thread_id();
  const uintptr_t own_end = thread == process_id() ? main_end : thread_pointer() & ~uintptr_t{7};
  const uintptr_t end = own_end - here < kDeepestOwn ? own_end : here + kForeign;
  uint64_t before = 0;
  for (uintptr_t at = here; at < end; at += kAtOnce) {
    const uintptr_t bytes = end - at < kAtOnce ? end - at : kAtOnce;
    iovec to{room.data(), bytes}, from{reinterpret_cast<void*>(at), bytes};
    const long got = system_call(SYS_process_vm_readv, thread, reinterpret_cast<long>(&to), 1,
                                 reinterpret_cast<long>(&from), 1, 0);
    if (got < 0) return got != -EFAULT;  // the end of a stack that is not the thread's own
    if (any_saved_state(reinterpret_cast<const uint64_t*>(room.data()), static_cast<uintptr_t>(got),
                        at, &before, Which::kRunning))
      return true;
    if (static_cast<uintptr_t>(got) < bytes) return false;
  }
  return false;
}

}  // namespace weir::base
