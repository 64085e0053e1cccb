// SPDX-License-Identifier: Apache-2.0
#include "hook/fork.h"

#include <sched.h>
#include <stdarg.h>

#include "layers/writeback/client.h"
#include "hook/library/kernel_aio.h"
#include "base/section.h"
#include "base/thread.h"
#include "layers/machinery/stack/process.h"

namespace weir::hook {

void before_fork() {
  stack::before_fork();
  if (base::any_held()) base::wait_for_held();
  base::wait_for_beginning();
}

void after_fork_in_parent() {
  stack::after_fork_in_parent();
  share_all();
}

void in_forked_child() {
  trace::process().forked();
  trace::forget_own_log();
  forget_requests();
  base::forget_held();
  base::forget_sections();
  base::forget_threads();
  share_all();
  stack::in_forked_child();
  writeback::forked();
}

}  // namespace weir::hook

using namespace weir::hook;
namespace base = weir::base;

// fork without handlers.
WEIR_HOOK(pid_t, _Fork) {
  return forking([] { return WEIR_REAL(_Fork)(); });
}

namespace {

// What a child of clone() begins with. A copy of the parent's memory has a copy of this; a child
// within that memory has the thing itself, and its parent waits.
struct Beginning {
  int (*body)(void*);
  void* argument;
  bool copied;
};

int begin(void* with) {
  const Beginning& beginning = *static_cast<const Beginning*>(with);
  if (beginning.copied) in_forked_child();
  else weir::trace::thread_log.in_vfork_child = true;
  const int status = beginning.body(beginning.argument);
  // libc ends the child's first thread by a system call that nobody sees.
  weir::stack::at_quick_end();
  if (!beginning.copied) return status;
  if (recording()) weir::trace::process().end(weir::wire::End::kQuickExit);
  if (base::only_own_threads_besides_this()) base::system_call(SYS_exit_group, status);
  return status;
}

}  // namespace

// Threads go on unseen, and so does what a child does that shares memory with a parent that runs
// on.
WEIR_HOOK(int, clone, int (*body)(void*), void* top, int flags, void* argument, ...) {
  va_list more;
  va_start(more, argument);
  auto* const parent_id = va_arg(more, void*);
  auto* const storage = va_arg(more, void*);
  auto* const child_id = va_arg(more, void*);
  va_end(more);
  const bool copied = (flags & CLONE_VM) == 0,
             waits = (flags & (CLONE_VFORK | CLONE_THREAD | CLONE_FILES)) == CLONE_VFORK;
  if (body == nullptr || top == nullptr || (!copied && !waits)) {
    if ((flags & CLONE_THREAD) == 0) weir::stack::before_spawn(false);
    return WEIR_REAL(clone)(body, top, flags, argument, parent_id, storage, child_id);
  }
  Beginning beginning{body, argument, copied};
  const auto call = [&] {
    return WEIR_REAL(clone)(begin, top, flags, &beginning, parent_id, storage, child_id);
  };
  if (copied) return forking(call);
  weir::stack::before_spawn(false);
  const bool before = weir::trace::thread_log.in_vfork_child;
  const int child = call();
  weir::trace::thread_log.in_vfork_child = before;
  return child;
}
