// SPDX-License-Identifier: Apache-2.0
// What changes the process itself: the ends that run no exit handlers, and the working directory.
#include <unistd.h>

#include "hook/observe.h"

using namespace weir::hook;
using weir::record::process;

namespace {

void note_end(weir::wire::End how) {
  if (recording() && !weir::record::thread_log.in_vfork_child) process().end(how);
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

WEIR_HOOK(int, chdir, const char* path) {
  const int result = WEIR_REAL(chdir)(path);
  if (result == 0 && recording() && !weir::record::thread_log.in_vfork_child) process().names().set_working_directory();
  return result;
}
WEIR_HOOK(int, fchdir, int fd) {
  const int result = WEIR_REAL(fchdir)(fd);
  if (result == 0 && recording() && !weir::record::thread_log.in_vfork_child) process().names().set_working_directory();
  return result;
}
