// SPDX-License-Identifier: Apache-2.0
#include "os/thread.h"

#include <pthread.h>
#include <sys/prctl.h>

#include "os/syscall.h"

namespace weir::os {
namespace {

constinit uint32_t running = 0;
WEIR_THREAD bool is_own = false;

void* run(void* body) {
  void* const result = reinterpret_cast<void* (*)(void*)>(body)(nullptr);
  base::fetch_add(&running, ~0u);
  return result;
}

}  // namespace

bool start_thread(void* (*body)(void*), size_t stack_bytes) {
  const SignalsBlocked blocked;  // the thread inherits that
  pthread_attr_t how;
  if (pthread_attr_init(&how) != 0) return false;
  pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
  bool started = false;
  base::fetch_add(&running, 1u);
  for (size_t bytes = stack_bytes; bytes <= stack_bytes << 6 && !started; bytes <<= 3) {
    pthread_t made;
    started = pthread_attr_setstacksize(&how, bytes) == 0 && pthread_create(&made, &how, run, reinterpret_cast<void*>(body)) == 0;
  }
  if (!started) base::fetch_add(&running, ~0u);
  pthread_attr_destroy(&how);
  return started;
}

uint32_t own_threads() { return base::load(&running); }
void forget_threads() { base::store(&running, 0u); }

void begin_thread(const char* name) {
  const uint64_t programs = ~kSignalsOfLibc;
  system_call(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, reinterpret_cast<long>(&programs), 0, sizeof programs);
  signals_blocked = 1;  // from now on: no section of this thread has to do it
  system_call(SYS_prctl, PR_SET_NAME, reinterpret_cast<long>(name));
  is_own = true;
}

bool in_own_thread() { return is_own; }

}  // namespace weir::os
