// SPDX-License-Identifier: Apache-2.0
// Other programs: exec in its forms, and the calls that fork and exec in one. What is under layers is with the kernel before another
// program may see it. These calls have no records of their own; the children's are in the trace.
#include <spawn.h>
#include <stdarg.h>
#include <sys/types.h>

#include "hook/real.h"
#include "stack/process.h"

namespace stack = weir::stack;

WEIR_HOOK(int, execve, const char* path, char* const* arguments, char* const* environment) {
  stack::before_exec();
  return WEIR_REAL(execve)(path, arguments, environment);
}
WEIR_HOOK(int, execveat, int directory, const char* path, char* const* arguments, char* const* environment, int flags) {
  stack::before_exec();
  return WEIR_REAL(execveat)(directory, path, arguments, environment, flags);
}
WEIR_HOOK(int, fexecve, int fd, char* const* arguments, char* const* environment) {
  stack::before_exec();
  return WEIR_REAL(fexecve)(fd, arguments, environment);
}
WEIR_HOOK(int, execv, const char* path, char* const* arguments) {
  stack::before_exec();
  return WEIR_REAL(execv)(path, arguments);
}
WEIR_HOOK(int, execvp, const char* path, char* const* arguments) {
  stack::before_exec();
  return WEIR_REAL(execvp)(path, arguments);
}
WEIR_HOOK(int, execvpe, const char* path, char* const* arguments, char* const* environment) {
  stack::before_exec();
  return WEIR_REAL(execvpe)(path, arguments, environment);
}

namespace {

// The arguments of a list, up to its null, which counts.
int count_list(const char* first, va_list more) {
  int n = 1;
  for (const char* next = first; next != nullptr; next = va_arg(more, const char*)) ++n;
  return n;
}

void read_list(char** to, const char* first, va_list more) {
  for (const char* next = first;; next = va_arg(more, const char*)) {
    *to++ = const_cast<char*>(next);
    if (next == nullptr) return;
  }
}

}  // namespace

// Into an array on the stack, as libc does it: a child of vfork may call these. `more` then stands behind the null.
#define WEIR_ARGUMENTS(list, more)                                                            \
  va_list more;                                                                               \
  va_start(more, first);                                                                      \
  auto** list = static_cast<char**>(__builtin_alloca(sizeof(char*) * static_cast<size_t>(count_list(first, more)))); \
  va_end(more);                                                                               \
  va_start(more, first);                                                                      \
  read_list(list, first, more)

WEIR_HOOK(int, execl, const char* path, const char* first, ...) {
  WEIR_ARGUMENTS(list, more);
  va_end(more);
  stack::before_exec();
  return hook_execv(path, list);
}
WEIR_HOOK(int, execlp, const char* path, const char* first, ...) {
  WEIR_ARGUMENTS(list, more);
  va_end(more);
  stack::before_exec();
  return hook_execvp(path, list);
}
WEIR_HOOK(int, execle, const char* path, const char* first, ...) {
  va_list more;
  va_start(more, first);
  auto** list = static_cast<char**>(__builtin_alloca(sizeof(char*) * static_cast<size_t>(count_list(first, more))));
  va_end(more);
  va_start(more, first);
  char** to = list;
  for (const char* next = first;; next = va_arg(more, const char*)) {
    *to++ = const_cast<char*>(next);
    if (next == nullptr) break;
  }
  char* const* environment = va_arg(more, char* const*);
  va_end(more);
  return hook_execve(path, list, environment);
}

// With actions the child may copy any descriptor before it becomes the other program.
#define WEIR_SPAWN(symbol)                                                                                                     \
  WEIR_HOOK(int, symbol, pid_t* child, const char* path, const posix_spawn_file_actions_t* actions, const posix_spawnattr_t* how, \
            char* const* arguments, char* const* environment) {                                                                \
    stack::before_spawn(actions != nullptr);                                                                                   \
    return WEIR_REAL(symbol)(child, path, actions, how, arguments, environment);                                               \
  }
WEIR_SPAWN(posix_spawn)
WEIR_SPAWN(posix_spawnp)

WEIR_HOOK(int, system, const char* command) {
  stack::before_spawn(false);
  return WEIR_REAL(system)(command);
}

// fork without handlers.
WEIR_HOOK(pid_t, _Fork) {
  stack::before_fork();
  const pid_t child = WEIR_REAL(_Fork)();
  if (child == 0) stack::in_forked_child();
  else stack::after_fork_in_parent();
  return child;
}
