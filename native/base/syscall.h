// SPDX-License-Identifier: Apache-2.0
// System calls made directly: they pass no hook, set no errno and may be made in a signal handler,
// a forked child or before libc is ready. Each returns what the kernel returns: a value, or -errno.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/valgrind.h"

namespace weir::base {

inline long system_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                        long f = 0) {
#if defined(__x86_64__)
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
  return x0;
#else
#error "weir knows the system call of x86-64 and of aarch64"
#endif
}

inline bool failed(long result) { return result < 0 && result > -4096; }

inline long open_at(int dir, const char* path, int flags, int mode = 0) {
  return system_call(SYS_openat, dir, reinterpret_cast<long>(path), flags, mode);
}
inline long close_fd(int fd) { return system_call(SYS_close, fd); }
inline long read_fd(int fd, void* to, size_t n) {
  return system_call(SYS_read, fd, reinterpret_cast<long>(to), static_cast<long>(n));
}
inline long write_fd(int fd, const void* from, size_t n) {
  return system_call(SYS_write, fd, reinterpret_cast<long>(from), static_cast<long>(n));
}
inline long read_at(int fd, void* to, size_t n, uint64_t offset) {
  const auto at = static_cast<long>(offset);
  return system_call(SYS_pread64, fd, reinterpret_cast<long>(to), static_cast<long>(n), at);
}
inline long write_at(int fd, const void* from, size_t n, uint64_t offset) {
  return system_call(SYS_pwrite64, fd, reinterpret_cast<long>(from), static_cast<long>(n),
                     static_cast<long>(offset));
}
inline long write_vector_at(int fd, const iovec* pieces, int count, uint64_t offset) {
  return system_call(SYS_pwritev, fd, reinterpret_cast<long>(pieces), count,
                     static_cast<long>(offset), 0);
}
// Whether the file's storage is memory (tmpfs, ramfs), whose pages once mapped for writing stay so.
inline bool lies_in_memory(int fd) {
  struct statfs about;
  if (system_call(SYS_fstatfs, fd, reinterpret_cast<long>(&about)) != 0) return false;
  return about.f_type == 0x01021994 || about.f_type == 0x858458f6;
}
// Largest size this process may give a file: past it the kernel sends SIGXFSZ, which ends most
// programs.
inline uint64_t soft_limit(int which) {
  uint64_t limits[2] = {~uint64_t{0}, 0};
  system_call(SYS_prlimit64, 0, which, 0, reinterpret_cast<long>(limits));
  return limits[0];
}
inline uint64_t largest_size() { return soft_limit(RLIMIT_FSIZE); }
// Bytes that may be mapped (ulimit -v), of this process and of programs that it starts.
inline uint64_t address_space() { return soft_limit(RLIMIT_AS); }
// Of weir's own files: beyond the limit -EFBIG, and no signal.
inline long resize(int fd, uint64_t bytes) {
  return bytes > largest_size() ? -EFBIG : system_call(SYS_ftruncate, fd, static_cast<long>(bytes));
}
inline long allocate(int fd, uint64_t offset, uint64_t bytes) {
  return offset + bytes > largest_size()
             ? -EFBIG
             : system_call(SYS_fallocate, fd, 0, static_cast<long>(offset),
                           static_cast<long>(bytes));
}
// All locks that belong to the open file, whoever else has a copy of the descriptor: flock's and
// those of F_OFD_SETLK.
inline void end_locks(int fd) {
  system_call(SYS_flock, fd, LOCK_UN);
  struct flock all{};
  all.l_type = F_UNLCK;
  system_call(SYS_fcntl, fd, F_OFD_SETLK, reinterpret_cast<long>(&all));
}
inline long map(size_t bytes, int protection, int flags, int fd = -1, uint64_t offset = 0) {
  return system_call(SYS_mmap, 0, static_cast<long>(bytes), protection, flags, fd,
                     static_cast<long>(offset));
}
inline long map_at(void* at, size_t bytes, int protection, int flags, int fd, uint64_t offset) {
  return system_call(SYS_mmap, reinterpret_cast<long>(at), static_cast<long>(bytes), protection,
                     flags | MAP_FIXED, fd, static_cast<long>(offset));
}
inline long advise(void* at, size_t bytes, int advice) {
  return system_call(SYS_madvise, reinterpret_cast<long>(at), static_cast<long>(bytes), advice);
}
inline long unmap(void* at, size_t bytes) {
  return system_call(SYS_munmap, reinterpret_cast<long>(at), static_cast<long>(bytes));
}
inline long link_path(const char* from, const char* to) {
  return system_call(SYS_linkat, AT_FDCWD, reinterpret_cast<long>(from), AT_FDCWD,
                     reinterpret_cast<long>(to), 0);
}
inline long rename_path(const char* from, const char* to) {
  return system_call(SYS_renameat2, AT_FDCWD, reinterpret_cast<long>(from), AT_FDCWD,
                     reinterpret_cast<long>(to), 1 /* RENAME_NOREPLACE */);
}
inline long unlink_path(const char* path) {
  return system_call(SYS_unlinkat, AT_FDCWD, reinterpret_cast<long>(path), 0);
}
inline long read_link(const char* path, char* to, size_t n) {
  return system_call(SYS_readlinkat, AT_FDCWD, reinterpret_cast<long>(path),
                     reinterpret_cast<long>(to), static_cast<long>(n));
}
inline long working_directory(char* to, size_t n) {
  return system_call(SYS_getcwd, reinterpret_cast<long>(to), static_cast<long>(n));
}
inline int process_id() { return static_cast<int>(system_call(SYS_getpid)); }
inline int parent_id() { return static_cast<int>(system_call(SYS_getppid)); }
inline int thread_id() { return static_cast<int>(system_call(SYS_gettid)); }
inline void yield() { system_call(SYS_sched_yield); }

// Whether the 8 aligned bytes around an address can be read: the kernel takes the set of signals
// before it looks at what is to be done with it, and refuses that (sigprocmask(2): EFAULT, EINVAL).
inline bool can_read(uintptr_t at) {
  if (valgrind::is_running()) {  // it reports such a call, and those that give it memory without a
                                 // value
    uint64_t word = 0;
    iovec to{&word, sizeof word}, from{reinterpret_cast<void*>(at & ~uintptr_t{7}), sizeof word};
    return system_call(SYS_process_vm_readv, system_call(SYS_gettid), reinterpret_cast<long>(&to),
                       1, reinterpret_cast<long>(&from), 1, 0) == 8;
  }
  return system_call(SYS_rt_sigprocmask, -1, static_cast<long>(at & ~uintptr_t{7}), 0, 8) ==
         -22 /* EINVAL */;
}

// Copies a zero-terminated text from an address that may be anything. False when it cannot be read
// or has no end within size bytes.
inline bool copy_text(char* to, const char* from, size_t size) {
  for (size_t done = 0; done < size;) {
    const auto at = reinterpret_cast<uintptr_t>(from) + done;
    if (!can_read(at)) return false;
    size_t piece = 4096 - at % 4096;
    if (piece > size - done) piece = size - done;
    for (; piece > 0; ++done, --piece) {
      if ((to[done] = base::load_relaxed(&from[done])) == 0) return true;
    }
  }
  return false;
}

// A process that filters its system calls (seccomp) may be killed for one that it did not think of.
// From then on weir makes none: it goes on in the memory it has.
extern WEIR_OWN uint32_t no_more_calls;
inline bool sealed() { return base::load_relaxed(&no_more_calls) != 0; }

// Signals that glibc keeps for itself, of which pthread_sigmask lets nobody block one. By 33 each
// thread of the process takes part in setuid and its like, and the caller waits for all of them: a
// thread that blocks it blocks that call for ever. 32 ends a thread that may be cancelled at any
// instruction.
inline constexpr uint64_t kSignalOfCancel = uint64_t{1} << 31, kSignalOfSetxid = uint64_t{1} << 32;
inline constexpr uint64_t kSignalsOfLibc = kSignalOfCancel | kSignalOfSetxid;

// All signals of the calling thread held back for the lifetime of the object, and asynchronous
// cancellation, but not what other threads wait for. One within another costs nothing.
// signals_blocked: 1 in such a section, for which signals_before has the program's; 2 in a thread
// of weir's own, always.
extern WEIR_OWN WEIR_THREAD uint32_t signals_blocked;
extern WEIR_OWN WEIR_THREAD uint64_t signals_before;
// Those that an instruction of the thread itself causes: SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV,
// SIGSYS. One that is held back ends the process, so code that touches the program's memory lets
// them through.
inline constexpr uint64_t kFaults = 1u << 3 | 1u << 4 | 1u << 6 | 1u << 7 | 1u << 10 | 1u << 30;
// False: they are held back already, and nothing has to be ended.
inline bool begin_blocking_signals(uint64_t* before, uint64_t but = 0) {
  if (sealed() || signals_blocked != 0) return false;
  const uint64_t all = ~(kSignalOfSetxid | but);
  system_call(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, reinterpret_cast<long>(&all),
              reinterpret_cast<long>(before), sizeof *before);
  signals_blocked = 1;
  signals_before = *before;
  return true;
}
inline void end_blocking_signals(uint64_t before) {
  signals_blocked = 0;
  system_call(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, reinterpret_cast<long>(&before), 0,
              sizeof before);
}

class SignalsBlocked {
 public:
  explicit SignalsBlocked(uint64_t but = 0) : begun_(begin_blocking_signals(&before_, but)) {}
  ~SignalsBlocked() {
    if (begun_) end_blocking_signals(before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  uint64_t before_ = 0;
  bool begun_;
};

// A message, written whole or not at all: it does not wait for a reader, and no reader left is no
// signal.
WEIR_COLD void say(int fd, const char* text, size_t n);

// weir has a file open for a moment only, but another thread may close numbers that it takes for
// its own (close_range, daemons), and open a file of its own under weir's number. So whoever opens
// a file holds a HoldsDescriptor meanwhile, and a hook of a call that may close such a number a
// ClosesNumbers. Each of both announces itself and then waits until there is none of the other
// kind, for a bounded time: a file system that hangs must not hang the program. Nested ones of a
// thread do not wait.
//
// A HoldsDescriptor that was left by a jump (siglongjmp out of a handler) or a cancellation never
// ends. Who waits for it, a close of another thread or a fork, does so once, for 20,000 yields of
// the processor or 2 s: from then on held_in_vain counts it, and only what is held beyond that is
// waited for. The thread that jumped takes itself for one that has files open, and waits for no
// other.
extern WEIR_OWN uint32_t descriptors_held, held_in_vain;
extern WEIR_OWN uint32_t closing_numbers;
extern WEIR_THREAD uint32_t holds_or_closes;  // of the thread
class HoldsDescriptor {
 public:
  HoldsDescriptor() {
    base::fetch_add_all(&descriptors_held, 1u);
    if (WEIR_UNLIKELY(base::load_all(&closing_numbers) != 0) && holds_or_closes == 0)
      wait_for_closing();
    ++holds_or_closes;
  }
  ~HoldsDescriptor() {
    --holds_or_closes;
    base::fetch_add_all(&descriptors_held, ~0u);
    if (WEIR_UNLIKELY(base::load_all(&held_in_vain) != 0)) lower_held_in_vain();
  }
  HoldsDescriptor(const HoldsDescriptor&) = delete;
  HoldsDescriptor& operator=(const HoldsDescriptor&) = delete;

 private:
  WEIR_COLD static void wait_for_closing();
  WEIR_COLD static void lower_held_in_vain();
};
inline bool any_held() {
  return WEIR_UNLIKELY(base::load_all(&descriptors_held) > base::load_all(&held_in_vain));
}
// Until none is held, but for those that were waited for in vain. How often the processor was given
// up.
WEIR_COLD uint32_t wait_for_held();
// In a forked child: what the parent's other threads did.
inline void forget_held() {
  base::store(&descriptors_held, 0u);
  base::store(&held_in_vain, 0u);
  base::store(&closing_numbers, 0u);
}

class ClosesNumbers {
 public:
  // may_be_weirs: false for numbers that are known to be the program's.
  explicit ClosesNumbers(bool may_be_weirs) : counts_(may_be_weirs) {
    if (WEIR_UNLIKELY(counts_)) begin();
  }
  ~ClosesNumbers() {
    if (WEIR_UNLIKELY(counts_)) end();
  }
  ClosesNumbers(const ClosesNumbers&) = delete;
  ClosesNumbers& operator=(const ClosesNumbers&) = delete;

 private:
  WEIR_COLD static void begin();
  WEIR_COLD static void end();
  bool counts_;
};

// What makes a file that file. False when the descriptor is not open.
struct Identity {
  uint64_t device, number;
  bool operator==(const Identity&) const = default;
};
inline bool identify(int fd, Identity* to) {
  struct stat about;
  if (system_call(SYS_fstat, fd, reinterpret_cast<long>(&about)) != 0) return false;
  *to = {static_cast<uint64_t>(about.st_dev), static_cast<uint64_t>(about.st_ino)};
  return true;
}

// Reads a whole small file (of /proc) into a buffer, zero-terminated; bytes read, or -errno.
inline long read_file(const char* path, char* to, size_t size) {
  const HoldsDescriptor held;
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

}  // namespace weir::base
