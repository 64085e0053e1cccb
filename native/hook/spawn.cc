// SPDX-License-Identifier: Apache-2.0
// Other programs: exec in its forms, and the calls that fork and exec in one. What layers have
// accepted is with the kernel before another program may see it. These calls have no records of
// their own; the children's are in the trace.
#include <spawn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "hook/by_name.h"
#include "hook/foreign.h"
#include "hook/observe.h"
#include "base/syscall.h"
#include "layers/machinery/stack/process.h"

using namespace weir::hook;
namespace base = weir::base;
namespace stack = weir::stack;

namespace {

// A child that was forked and has made no call yet has no chunk: it tells through its parent's.
bool may_tell() {
  const uint32_t& wanted = weir::trace::wanted;
  if (base::load_relaxed(&wanted) == weir::trace::kUndecided) recording();
  return base::load_relaxed(&wanted) == 1 && !base::sealed();
}

base::Text program_of(const char* path) {
  return path != nullptr ? base::text(path) : base::text("(a descriptor)");
}

// A program that a layer keeps elsewhere than under its name; a bare name is looked for in PATH.
int bring_program(int directory, const char* path) {
  if (WEIR_LIKELY(!stack::any_layer_has_names()) || path == nullptr) return 0;
  return strchr(path, '/') != nullptr || directory != AT_FDCWD
             ? bring_file(directory, path, ETXTBSY)
             : 0;
}

// The environment for a program that weir's library cannot be loaded into, and why.
struct Foreign {
  char room[192];
  base::Text why;
};

bool is_foreign(const ToExecute& program, char* const* environment, Foreign* to) {
  if (base::sealed() || !preloads_library(environment)) return false;
  const int error = errno;
  char loader[128];
  const base::Text found = foreign_loader(program, loader, sizeof loader);
  to->why = base::Writer(to->room, sizeof to->room).add("loader ").add(found).view();
  errno = error;
  return found.size != 0;
}

// exec: the program's name is recorded before, as a call that succeeds does not come back.
template <typename Real>
int becoming(const ToExecute& program, char* const* environment, Real real) {
  const char* const path = program.path;
  if (bring_program(program.directory, path) != 0) return -1;
  stack::before_exec();
  char room[weir::trace::kReasonBytes];
  // The kernel looks at the path and the environment first where they may be anything: what cannot
  // be read is not recorded.
  char known[1024];
  const bool is_text = path == nullptr || base::copy_text(known, path, sizeof known);
  if (!is_text ||
      (environment != nullptr && !base::can_read(reinterpret_cast<uintptr_t>(environment))))
    return real(environment);
  Foreign foreign;
  const bool drops = is_foreign(program, environment, &foreign);
  if (drops) environment = WEIR_WITHOUT_LIBRARY(environment);
  if (!may_tell()) return real(environment);
  auto& me = weir::trace::process();
  if (base::load_relaxed(&weir::trace::pulse.alive) != 0 && !weir::trace::thread_log.in_vfork_child)
    me.before_exec();
  const auto pid = static_cast<uint64_t>(base::process_id());
  me.note_start(pid, base::ticks(),
                drops ? foreign.why : me.why_unseen(environment, room, sizeof room),
                program_of(path != nullptr ? known : nullptr));
  const int result = real(environment);
  const int error = errno;
  me.note_start(pid, base::ticks(), base::text("failed"), {});
  errno = error;
  return result;
}

base::Text why_unseen(char* const* environment, char* room, size_t size) {
  return may_tell() ? weir::trace::process().why_unseen(environment, room, size) : base::Text{};
}

// A program that a function of libc starts: recorded once it is there.
void record_start(uint64_t pid, uint64_t ticks, base::Text why, const char* program) {
  if (!may_tell()) return;
  const int error = errno;
  auto& me = weir::trace::process();
  if (pid != 0 || why.size != 0) me.note_start(pid, ticks, why, base::text(program));
  errno = error;
}

}  // namespace

WEIR_HOOK(int, execve, const char* path, char* const* arguments, char* const* environment) {
  return becoming({AT_FDCWD, path, false}, environment, [&](char* const* given) {
    return WEIR_REAL(execve)(path, arguments, given);
  });
}
WEIR_HOOK(int, execveat, int directory, const char* path, char* const* arguments,
          char* const* environment, int flags) {
  return becoming({directory, path, false}, environment, [&](char* const* given) {
    return WEIR_REAL(execveat)(directory, path, arguments, given, flags);
  });
}
WEIR_HOOK(int, fexecve, int fd, char* const* arguments, char* const* environment) {
  return becoming({AT_FDCWD, nullptr, false}, environment,
                  [&](char* const* given) { return WEIR_REAL(fexecve)(fd, arguments, given); });
}
WEIR_HOOK(int, execv, const char* path, char* const* arguments) {
  return becoming({AT_FDCWD, path, false}, environ, [&](char* const* given) {
    return WEIR_REAL(execve)(path, arguments, given);
  });
}
WEIR_HOOK(int, execvpe, const char* path, char* const* arguments, char* const* environment) {
  return becoming({AT_FDCWD, path, true}, environment, [&](char* const* given) {
    return WEIR_REAL(execvpe)(path, arguments, given);
  });
}
WEIR_HOOK(int, execvp, const char* path, char* const* arguments) {
  return becoming({AT_FDCWD, path, true}, environ, [&](char* const* given) {
    return WEIR_REAL(execvpe)(path, arguments, given);
  });
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

// Into an array on the stack, as libc does it: a child of vfork may call these. `more` then stands
// behind the null.
#define WEIR_ARGUMENTS(list, more)                                                     \
  va_list more;                                                                        \
  va_start(more, first);                                                               \
  auto** list = static_cast<char**>(                                                   \
      __builtin_alloca(sizeof(char*) * static_cast<size_t>(count_list(first, more)))); \
  va_end(more);                                                                        \
  va_start(more, first);                                                               \
  read_list(list, first, more)

WEIR_HOOK(int, execl, const char* path, const char* first, ...) {
  WEIR_ARGUMENTS(list, more);
  va_end(more);
  return hook_execv(path, list);
}
WEIR_HOOK(int, execlp, const char* path, const char* first, ...) {
  WEIR_ARGUMENTS(list, more);
  va_end(more);
  return hook_execvp(path, list);
}
WEIR_HOOK(int, execle, const char* path, const char* first, ...) {
  va_list more;
  va_start(more, first);
  auto** list = static_cast<char**>(
      __builtin_alloca(sizeof(char*) * static_cast<size_t>(count_list(first, more))));
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
#define WEIR_SPAWN(symbol, searches)                                                            \
  WEIR_HOOK(int, symbol, pid_t* child, const char* path,                                        \
            const posix_spawn_file_actions_t* actions, const posix_spawnattr_t* how,            \
            char* const* arguments, char* const* environment) {                                 \
    if (bring_program(AT_FDCWD, path) != 0) return errno;                                       \
    stack::before_spawn(actions != nullptr);                                                    \
    Foreign foreign;                                                                            \
    char room[weir::trace::kReasonBytes];                                                       \
    if (is_foreign({AT_FDCWD, path, searches}, environment, &foreign))                          \
      environment = WEIR_WITHOUT_LIBRARY(environment);                                          \
    else foreign.why = why_unseen(environment, room, sizeof room);                              \
    pid_t started = 0;                                                                          \
    const uint64_t ticks = base::ticks();                                                       \
    const int result = WEIR_REAL(symbol)(&started, path, actions, how, arguments, environment); \
    if (result != 0) return result;                                                             \
    if (child != nullptr) *child = started;                                                     \
    record_start(static_cast<uint64_t>(started), ticks, foreign.why, path);                     \
    return result;                                                                              \
  }
WEIR_SPAWN(posix_spawn, false)
WEIR_SPAWN(posix_spawnp, true)

WEIR_HOOK(int, system, const char* command) {
  stack::before_spawn(false);
  const uint64_t ticks = base::ticks();
  const int result = WEIR_REAL(system)(command);
  char room[weir::trace::kReasonBytes];
  if (command != nullptr)
    record_start(0, ticks, why_unseen(environ, room, sizeof room), command);
  return result;
}
