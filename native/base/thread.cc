// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/apart.h"
#include "base/frames.h"
#include "base/syscall.h"

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

// State of the process' first thread. The name before it may have blanks and parentheses (proc(5)).
char state_of_first() {
  char text[512];
  if (read_file("/proc/self/stat", text, sizeof text) <= 0) return 0;
  const char* at = strrchr(text, ')');
  return at != nullptr && at[1] == ' ' ? at[2] : 0;
}

}  // namespace

bool start_thread(void* (*body)(void*), size_t stack_bytes) {
  if (!is_own && may_be_in_handler_on_any_stack()) return false;
  const SignalsBlocked blocked;  // the thread inherits that
  pthread_attr_t how;
  if (pthread_attr_init(&how) != 0) return false;
  pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
  bool started = false;
  base::fetch_add(&beginning, 1u);  // first: begun_threads() never counts one that is not there
  base::fetch_add(&running, 1u);
  for (size_t bytes = stack_bytes; bytes <= stack_bytes << 6 && !started; bytes <<= 3) {
    pthread_t made;
    started = pthread_attr_setstacksize(&how, bytes) == 0 && pthread_create(&made, &how, run, reinterpret_cast<void*>(body)) == 0;
  }
  if (!started) {
    base::fetch_add(&running, ~0u);
    base::fetch_add(&beginning, ~0u);
  }
  pthread_attr_destroy(&how);
  return started;
}

uint64_t count_threads() {
  constexpr uint64_t kOwnLinks = 2;  // a directory of /proc has one more for each that is in it
  struct stat about;
  const auto to = reinterpret_cast<long>(&about);
  if (system_call(SYS_newfstatat, AT_FDCWD, reinterpret_cast<long>("/proc/self/task"), to, 0) != 0) return 0;
  return about.st_nlink > kOwnLinks ? static_cast<uint64_t>(about.st_nlink) - kOwnLinks : 0;
}
uint32_t own_threads() { return base::load(&running); }
uint32_t begun_threads() {
  const uint32_t all = base::load(&running), not_yet = base::load(&beginning);
  return all > not_yet ? all - not_yet : 0;
}
bool only_own_threads_besides_this() {
  const uint64_t threads = count_threads();
  return own_threads() != 0 && threads != 0 && threads <= 1 + own_threads();
}

void end_process_without_program() {
  if (state_of_first() != 'Z') return;
  const uint64_t threads = count_threads();
  if (threads != 0 && threads <= 1 + own_threads()) exit(0);
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
  system_call(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, reinterpret_cast<long>(&programs), 0, sizeof programs);
  signals_blocked = 1;  // from now on: no section of this thread has to do it
  system_call(SYS_prctl, PR_SET_NAME, reinterpret_cast<long>(name));
  is_own = true;
}

bool in_own_thread() { return is_own; }

}  // namespace weir::base
