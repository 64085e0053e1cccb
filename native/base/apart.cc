// SPDX-License-Identifier: Apache-2.0
#include "base/apart.h"

#include <errno.h>
#include <sched.h>

#include "base/syscall.h"
#include "base/thread.h"

// glibc's clone() under the name that nobody hooks.
extern "C" {
extern char __libc_single_threaded __attribute__((weak));  // NOLINT(bugprone-reserved-identifier) glibc 2.32 and later
}
extern "C" int __clone(int (*body)(void*), void* stack, int flags, void* what, ...);  // NOLINT(bugprone-reserved-identifier)

namespace weir::base {
namespace {

constexpr size_t kStackBytes = 64 << 10;
constexpr int kPatience = 20000;  // turns of other threads
constexpr unsigned kUnshare = 2;  // CLOSE_RANGE_UNSHARE, Linux 5.9

WEIR_THREAD bool is_apart = false;
constinit uint32_t no_close_range = 0;

struct Work {
  void (*body)(void*);
  void* what;
  bool shares;   // the program's table, until it begins
  bool done;
  uint32_t lives;  // the kernel makes it 0 at the thread's end
};

long close_all(unsigned how) { return system_call(SYS_close_range, 0, ~0u, how); }

int begin(void* with) {
  auto& work = *static_cast<Work*>(with);
  if (work.shares && failed(close_all(kUnshare))) return 0;
  work.body(work.what);
  work.done = true;
  // The kernel says that the thread has ended before it closes what is left: a lock or a pipe's end would outlive the program's close().
  if (!work.shares) close_all(0);
  return 0;
}

void wait_for_end(const Work& work, int thread) {
  while (const uint32_t now = load(&work.lives)) {
    system_call(SYS_futex, reinterpret_cast<long>(&work.lives), 0 /* FUTEX_WAIT, by whom the kernel wakes too */, now, 0);
  }
  if (load_relaxed(&no_close_range) == 0) return;
  for (int i = 0; i < kPatience && system_call(SYS_tgkill, process_id(), thread, 0) == 0; ++i) yield();
}

// Like a thread in all but its descriptors. Its stack is not the caller's: a program's thread, or a handler, may have a small one.
bool run_in_thread(Work& work, char* stack) {
  const int flags = CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID | (work.shares ? CLONE_FILES : 0);
  const int before = errno;
  work.lives = 1;
  const int thread = __clone(begin, stack + kStackBytes, flags, &work, nullptr, nullptr, &work.lives);
  errno = before;
  if (thread > 0) wait_for_end(work, thread);
  return thread > 0;
}

bool run_beside(Work& work, bool empty) {
  const long stack = map(kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK);
  if (failed(stack)) return false;
  is_apart = true;
  work.shares = empty && load_relaxed(&no_close_range) == 0;
  const bool ran = run_in_thread(work, reinterpret_cast<char*>(stack));
  if (ran && !work.done && work.shares) {
    store(&no_close_range, 1u);
    work.shares = false;
    run_in_thread(work, reinterpret_cast<char*>(stack));
  }
  is_apart = false;
  unmap(reinterpret_cast<void*>(stack), kStackBytes);
  return work.done;
}

// Nobody else of the program's is there to close or open anything.
bool is_alone() {
  if (in_own_thread()) return false;
  if (&__libc_single_threaded != nullptr && load_relaxed(&__libc_single_threaded) != 0) return true;
  const uint32_t own = begun_threads();
  const uint64_t all = count_threads();
  return all != 0 && all <= 1 + own;
}

// Valgrind runs one thread at a time, and knows no such thread as is made here.
bool in_place() { return is_apart || sealed() || valgrind::is_running() || is_alone(); }

long read_here(const char* path, char* to, size_t size) {
  const long fd = open_at(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  if (failed(fd)) return fd;
  size_t n = 0;
  while (n + 1 < size) {
    const long got = read_fd(static_cast<int>(fd), to + n, size - 1 - n);
    if (got <= 0) break;
    n += static_cast<size_t>(got);
  }
  close_fd(static_cast<int>(fd));
  to[n] = 0;
  return static_cast<long>(n);
}

}  // namespace

bool run_apart(void (*body)(void*), void* what, Table table) {
  const HoldsDescriptor held;
  if (in_place()) {
    body(what);
    return true;
  }
  const SignalsBlocked blocked;
  Work work{body, what, false, false, 0};
  return run_beside(work, table == Table::empty);
}

long read_file(const char* path, char* to, size_t size) {
  long result = -EAGAIN;
  apart([&] { result = read_here(path, to, size); });
  return result;
}

}  // namespace weir::base
