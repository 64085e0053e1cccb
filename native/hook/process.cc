// SPDX-License-Identifier: Apache-2.0
// What changes the process itself: the ends that run no exit handlers, and the working directory.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "hook/by_name.h"
#include "hook/library/kernel_aio.h"
#include "layers/machinery/stack/bypass.h"
#include "layers/machinery/stack/names_of_layers.h"
#include "layers/machinery/stack/process.h"
#include "layers/machinery/stack/table.h"

using namespace weir::hook;
using weir::trace::process;

namespace {

void note_end(weir::wire::End how) {
  weir::stack::at_quick_end(how == weir::wire::End::kSignal);
  if (!recording() || weir::trace::thread_log.in_vfork_child) return;
  process_ends_with_requests();
  process().end(how);
}

}  // namespace

WEIR_HOOK(void, _exit, int status) {
  note_end(weir::wire::End::kQuickExit);
  WEIR_REAL(_exit)(status);
}
WEIR_HOOK(void, _Exit, int status) {
  note_end(weir::wire::End::kQuickExit);
  WEIR_REAL(_Exit)(status);
}
WEIR_HOOK(void, quick_exit, int status) {
  note_end(weir::wire::End::kQuickExit);
  WEIR_REAL(quick_exit)(status);
}
WEIR_HOOK(void, abort) {
  note_end(weir::wire::End::kSignal);
  WEIR_REAL(abort)();
}

namespace weir::hook {

bool concerns_filter() { return !base::sealed() && (recording() || stack::active()); }

void before_filter() {
  stack::before_filter();
  base::store(&base::no_more_calls, 1u);
  base::wait_for_held();  // the filter may be for all threads
}

void without_clock(long option, long value) {
  const bool strict = option == PR_SET_SECCOMP && value == 1 /* SECCOMP_MODE_STRICT */;
  if ((strict || (option == PR_SET_TSC && value == PR_TSC_SIGSEGV)) && recording())
    trace::process().stop();
}

void without_filter() {
  base::store(&base::no_more_calls, 0u);
  stack::without_filter();
}

}  // namespace weir::hook

// Four arguments, all of the size of a long.
WEIR_HOOK(int, prctl, int option, long a, long b, long c, long d) {
  if (option == PR_SET_TSC || option == PR_SET_SECCOMP) without_clock(option, a);
  if (option != PR_SET_SECCOMP || !concerns_filter()) return WEIR_REAL(prctl)(option, a, b, c, d);
  before_filter();
  const int result = WEIR_REAL(prctl)(option, a, b, c, d);
  if (result < 0) without_filter();
  return result;
}

WEIR_HOOK(int, chdir, const char* path) {
  const int result = weir::hook::checked_above(AT_FDCWD, path, WEIR_REAL(chdir)(path));
  weir::stack::directory_changed();
  if (result == 0 && recording() && !weir::trace::thread_log.in_vfork_child)
    process().names().set_working_directory();
  return result;
}
WEIR_HOOK(int, fchdir, int fd) {
  const int result = WEIR_REAL(fchdir)(fd);
  weir::stack::directory_changed();
  if (result == 0 && recording() && !weir::trace::thread_log.in_vfork_child)
    process().names().set_working_directory();
  return result;
}

#define WEIR_LIMIT(symbol, parameters, ...)                    \
  WEIR_HOOK(int, symbol, parameters) {                         \
    const int result = WEIR_REAL(symbol)(__VA_ARGS__);         \
    if (result == 0) weir::stack::limit_changed();             \
    return result;                                             \
  }
WEIR_LIMIT(setrlimit, WEIR_LIST(int which, const rlimit* to), which, to)
WEIR_LIMIT(setrlimit64, WEIR_LIST(int which, const rlimit* to), which, to)
WEIR_LIMIT(prlimit, WEIR_LIST(pid_t whose, int which, const rlimit* to, rlimit* before), whose,
           which, to, before)
WEIR_LIMIT(prlimit64, WEIR_LIST(pid_t whose, int which, const rlimit* to, rlimit* before), whose,
           which, to, before)

// Files that no kernel makes get the permissions that it would give them.
WEIR_HOOK(mode_t, umask, mode_t mask) {
  weir::base::store(&weir::stack::creation_mask, static_cast<uint32_t>(mask & 0777));
  return WEIR_REAL(umask)(mask);
}
