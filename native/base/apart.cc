// SPDX-License-Identifier: Apache-2.0
#include "base/apart.h"

#include <errno.h>
#include <sched.h>
#include <sys/wait.h>

#include "base/atomic.h"
#include "base/syscall.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/valgrind.h"

// glibc's clone() under the name that nobody hooks.
extern "C" int __clone(int (*body)(void*), void* stack, int flags, void* what,
                       ...);  // NOLINT(bugprone-reserved-identifier)

namespace weir::base {
namespace {

constexpr size_t kStackBytes = 32 << 10;
// Newer than some headers: close_range, CLOSE_RANGE_UNSHARE.
constexpr long kCloseRange = 436, kUnshare = 2;

struct Work {
  void (*body)(void*);
  void* what;
};

// The table is the program's until close_range gives this process an empty one. A copy would keep
// the program's files open for a moment: one that it has just written and closed could not be
// executed (ETXTBSY). Kernels before 5.9 make a copy.
int run(void* work) {
  const auto& w = *static_cast<Work*>(work);
  if (failed(system_call(kCloseRange, 0, UINT32_MAX, kUnshare)))
    system_call(SYS_unshare, CLONE_FILES);
  w.body(w.what);
  return 0;
}

struct Reading {
  const char* path;
  char* to;
  size_t size;
  long result;
};

void read_it(void* what) {
  auto& r = *static_cast<Reading*>(what);
  r.result = read_file(r.path, r.to, r.size);
}

// A frame of its own: a program's thread may have a small stack.
__attribute__((noinline)) void run_without_table(void (*body)(void*), void* what) {
  Work work{body, what};
  alignas(16) char stack[kStackBytes];
  // A process for a moment, as of vfork, that ends without a signal: wait() of the program does not
  // meet it.
  const int child = __clone(run, stack + sizeof stack, CLONE_VM | CLONE_FILES | CLONE_VFORK, &work);
  if (child < 0) return body(what);
  system_call(SYS_wait4, child, 0, __WALL, 0);
}

}  // namespace

constinit uint64_t own_bytes_read = 0, own_bytes_written = 0;

void run_apart(void (*body)(void*), void* what) {
  // valgrind makes the process one without the parent's memory, which brings nothing back, and has
  // it clean up at its end under locks that other threads may have held: it would wait without end.
  const bool is_apart = in_own_thread() && !sealed() && !valgrind::is_running();
  if (is_apart) return run_without_table(body, what);
  body(what);
}

long read_file_apart(const char* path, char* to, size_t size) {
  Reading reading{path, to, size, 0};
  run_apart(read_it, &reading);
  if (reading.result > 0) fetch_add(&own_bytes_read, static_cast<uint64_t>(reading.result));
  return reading.result;
}

// By the number that /proc has for the process: apart, /proc/self is another.
long read_of_process_apart(const char* name, char* to, size_t size) {
  char number[24], path[80];
  const long digits = read_link("/proc/self", number, sizeof number - 1);
  if (digits <= 0 || digits >= static_cast<long>(sizeof number)) return -ENOENT;
  Writer(path, sizeof path)
      .add("/proc/").add(Text{number, static_cast<size_t>(digits)}).add("/").add(name);
  const long count = read_file_apart(path, to, size);
  if (count > 0) return count;
  // One that may not be traced shows that to itself alone.
  Writer(path, sizeof path).add("/proc/self/").add(name);
  return read_file(path, to, size);
}

}  // namespace weir::base
