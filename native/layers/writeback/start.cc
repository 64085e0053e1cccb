// SPDX-License-Identifier: Apache-2.0
// Starts the daemon out of a stranger's process so that neither notices the other: a grandchild in
// a session of its own, made by two clones that share memory until the exec (no copy of page
// tables, no fork handlers), with nothing inherited but the user.
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/text.h"
#include "layers/writeback/inside.h"
#include "layers/machinery/node/place.h"
#include "base/syscall.h"

// libc's own name for clone, which nobody stands in front of.
extern "C" int __clone(int (*body)(void*), void* top, int flags, void* argument, ...);

namespace weir::writeback {
namespace {

constexpr size_t kStackBytes = 64 << 10;
constexpr size_t kLongestPath = 4096;

constinit char chosen[kLongestPath] = {};
constinit const char* traces = nullptr;  // where the daemon says what it could not write

struct Start {
  char* stack_end;  // of the grandchild
  const char* program;
  char* arguments[5];
  char* environment[1];
  volatile bool failed;
};

void close_all() {
  if (base::system_call(SYS_close_range, 0, ~0u, 0) == 0) return;
  for (int fd = 0; fd < 4096; ++fd) base::close_fd(fd);  // before Linux 5.9
}

// The grandchild, in the program's memory until it is another program.
int become_daemon(void* with) {
  auto* start = static_cast<Start*>(with);
  base::system_call(SYS_setsid);
  close_all();
  const long null = base::open_at(AT_FDCWD, "/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) {
    if (fd != null) base::system_call(SYS_dup3, null, fd, 0);
  }
  base::system_call(SYS_chdir, reinterpret_cast<long>("/"));
  uint64_t everywhere[128];
  memset(everywhere, 0xff, sizeof everywhere);
  base::system_call(SYS_sched_setaffinity, 0, sizeof everywhere,
                    reinterpret_cast<long>(everywhere));
  base::system_call(SYS_execve, reinterpret_cast<long>(start->program),
                    reinterpret_cast<long>(start->arguments),
                    reinterpret_cast<long>(start->environment));
  start->failed = true;
  return 127;
}

int between(void* with) {
  auto* start = static_cast<Start*>(with);
  if (__clone(become_daemon, start->stack_end, CLONE_VM | CLONE_VFORK, with) < 0)
    start->failed = true;
  return 0;
}

// Beside the library, or the program, that contains this function.
bool find_beside(const char* name, char* to, size_t size) {
  Dl_info about;
  if (dladdr(reinterpret_cast<void*>(&find_beside), &about) == 0 || about.dli_fname == nullptr)
    return false;
  const char* slash = strrchr(about.dli_fname, '/');
  if (slash == nullptr) return false;
  base::Writer path(to, size);
  path.add(base::Text{about.dli_fname, static_cast<size_t>(slash - about.dli_fname)})
      .add("/")
      .add(name);
  return !path.cut();
}

bool find_program(char* to, size_t size) {
  if (chosen[0] != 0) return !base::Writer(to, size).add(chosen).cut();
  return find_beside("weir-drain", to, size);
}

}  // namespace

void use_daemon(const char* path) { base::Writer(chosen, sizeof chosen).add(path); }

void begin() {
  if (chosen[0] == 0 && !find_program(chosen, sizeof chosen)) chosen[0] = 0;
  traces = getenv("WEIR_TRACE_DIR");
}

bool start_daemon() { return start_daemon(nullptr); }

namespace {

// arguments: of the program, its name first, a null last.
bool start(const char* program, const char* const* arguments) {
  const int before = errno;
  const long stacks =
      base::map(2 * kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK);
  if (base::failed(stacks)) return false;
  auto* lower = reinterpret_cast<char*>(stacks) + kStackBytes;
  Start start{lower + kStackBytes, program, {}, {nullptr}, false};
  for (int i = 0; arguments[i] != nullptr; ++i)
    start.arguments[i] = const_cast<char*>(arguments[i]);
  // No signal at its end: the program's own children are all that its SIGCHLD and wait() are about.
  const int child = __clone(between, lower, CLONE_VM | CLONE_VFORK, &start);
  if (child > 0) {
    long ended;
    do ended = base::system_call(SYS_wait4, child, 0, __WALL, 0);
    while (ended == -EINTR);
  }
  base::unmap(reinterpret_cast<void*>(stacks), 2 * kStackBytes);
  errno = before;
  return child > 0 && !start.failed;
}

}  // namespace

bool start_daemon(const char* option) {
  static constinit char program[kLongestPath] = {};
  if (!find_program(program, sizeof program)) return false;
  const char* const own = node::own_directory();
  const char* const usual[] = {"weir-drain", own, traces, nullptr};
  const char* const with_option[] = {"weir-drain", option, own, nullptr};
  return start(program, option != nullptr ? with_option : usual);
}

bool start_program(const char* name, const char* option, const char* argument) {
  static constinit char program[kLongestPath] = {};
  const char* const arguments[] = {name, option, argument, nullptr};
  const base::SignalsBlocked blocked;
  return find_beside(name, program, sizeof program) && start(program, arguments);
}

}  // namespace weir::writeback
