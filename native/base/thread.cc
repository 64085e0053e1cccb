// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/apart.h"
#include "base/frames.h"
#include "base/syscall.h"
#include "base/text.h"

namespace weir::base {
namespace {

constinit uint32_t running = 0, beginning = 0;
WEIR_THREAD bool is_own = false;

void* run(void* body) {
  base::fetch_add(&beginning, ~0u);
  void* const result = reinterpret_cast<void* (*)(void*)>(body)(nullptr);
  base::fetch_add(&running, ~0u);
  return result;
}

// State of the process' first thread, and its threads, by the kernel's count. The name in field 2
// may have blanks (proc(5)).
bool look_at_process(char* state, uint64_t* threads) {
  constexpr int kState = 3, kThreads = 20;
  char text[512];
  if (read_of_process_apart("stat", text, sizeof text) <= 0) return false;
  const char* at = strrchr(text, ')');
  for (int field = 2; field < kThreads; ++field) {
    at = at != nullptr ? strchr(at + 1, ' ') : nullptr;
    if (at == nullptr) return false;
    if (field + 1 == kState) *state = at[1];
  }
  *threads = 0;
  for (++at; *at >= '0' && *at <= '9'; ++at)
    *threads = *threads * 10 + static_cast<uint64_t>(*at - '0');
  return true;
}

}  // namespace

bool start_thread(void* (*body)(void*), size_t stack_bytes) {
  if (!is_own && may_be_in_handler_on_any_stack()) return false;
  const SignalsBlocked blocked;  // the thread inherits that
  pthread_attr_t how;
  if (pthread_attr_init(&how) != 0) return false;
  pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
  bool started = false;
  base::fetch_add(&running, 1u);
  base::fetch_add(&beginning, 1u);
  for (size_t bytes = stack_bytes; bytes <= stack_bytes << 6 && !started; bytes <<= 3) {
    pthread_t made;
    started = pthread_attr_setstacksize(&how, bytes) == 0 &&
              pthread_create(&made, &how, run, reinterpret_cast<void*>(body)) == 0;
  }
  if (!started) {
    base::fetch_add(&running, ~0u);
    base::fetch_add(&beginning, ~0u);
  }
  pthread_attr_destroy(&how);
  return started;
}

uint32_t own_threads() { return base::load(&running); }
bool only_own_threads_besides_this() {
  char state = 0;
  uint64_t threads = 0;
  return own_threads() != 0 && look_at_process(&state, &threads) && threads <= 1 + own_threads();
}

void end_process_without_program() {
  char state = 0;
  uint64_t threads = 0;
  if (look_at_process(&state, &threads) && state == 'Z' && threads <= 1 + own_threads()) exit(0);
}

void forget_threads() {
  base::store(&running, 0u);
  base::store(&beginning, 0u);
}

void wait_for_beginning() {
  constexpr int kPatience = 10000;  // 100 us each: not for ever
  for (int i = 0; i < kPatience && base::load(&beginning) != 0 && !sealed(); ++i) {
    const timespec step{0, 100'000};
    system_call(SYS_nanosleep, reinterpret_cast<long>(&step), 0);
  }
}

void begin_thread(const char* name) {
  const uint64_t programs = ~kSignalsOfLibc;
  system_call(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, reinterpret_cast<long>(&programs), 0,
              sizeof programs);
  signals_blocked = 2;  // from now on: no section of this thread has to do it
  system_call(SYS_prctl, PR_SET_NAME, reinterpret_cast<long>(name));
  is_own = true;
}

bool in_own_thread() { return is_own; }

}  // namespace weir::base
