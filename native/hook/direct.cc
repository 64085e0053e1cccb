// SPDX-License-Identifier: Apache-2.0
// libc's syscall(): programs that make a system call by number. The ones of table_numbers.def are
// recorded and answered as libc's function of the same call is; all others go on to libc without a
// frame of ours on the stack (clone and vfork return twice). A syscall instruction in the program
// itself is out of reach. x86-64 alone.
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <utime.h>

#include <type_traits>

#include "base/credentials.h"
#include "base/scratch.h"
#include "base/section.h"
#include "hook/closing.h"
#include "hook/fork.h"
#include "hook/library/kernel_aio.h"
#include "hook/library/uring.h"
#include "hook/mappings.h"
#include "layers/machinery/stack/posix.h"
#include "layers/machinery/stack/process.h"
#include "layers/machinery/stack/table.h"

#if defined(__x86_64__)

using namespace weir::hook;
namespace base = weir::base;
namespace stack = weir::stack;

#define WEIR_TYPES(...) __VA_ARGS__
#define WEIR_NUMBER(number, symbol)
#define WEIR_NUMBER_AS(number, result, symbol, types, ...) \
  WEIR_DECLARE(result, symbol, WEIR_TYPES types);
#include "hook/table_numbers.def"
#undef WEIR_NUMBER_AS
#undef WEIR_NUMBER
WEIR_DECLARE(int, fcntl, int, int, ...);
WEIR_DECLARE(int, ioctl, int, unsigned long, ...);
WEIR_DECLARE(int, waitid, idtype_t, id_t, siginfo_t*, int);
WEIR_DECLARE(int, utimensat, int, const char*, const timespec*, int);
WEIR_DECLARE(int, futimesat, int, const char*, const timeval*);
WEIR_DECLARE(int, futimens, int, const timespec*);
WEIR_DECLARE(int, futimes, int, const timeval*);

namespace {

// Newer than some headers.
constexpr long kIoPgetevents = 333, kIoUringSetup = 425, kClone3 = 435, kOpenat2 = 437,
               kFaccessat2 = 439, kFchmodat2 = 452;

using Direct = long (*)(long, long, long, long, long, long, long);

template <typename Real>
long filtering(bool sets_a_filter, Real real) {
  if (!sets_a_filter || !concerns_filter()) return real();
  before_filter();
  const long result = real();
  if (result < 0) without_filter();
  return result;
}

// Calls on a file under layers, as libc's functions make them. The offset of a vector's call is in
// one register, as off_t is: the kernel shifts the second half out.
long move_layered(stack::File* f, long n, int fd, long b, long c, long d, long flags) {
  const auto size = static_cast<size_t>(c);
  const auto count = static_cast<int>(c);
  auto* const to = reinterpret_cast<void*>(b);
  const auto* const v = reinterpret_cast<const iovec*>(b);
  switch (n) {
    case SYS_read: return stack::read(f, fd, to, size);
    case SYS_write: return stack::write(f, fd, to, size);
    case SYS_pread64: return stack::pread(f, fd, to, size, d);
    case SYS_pwrite64: return stack::pwrite(f, fd, to, size, d);
    case SYS_readv: return stack::readv(f, fd, v, count);
    case SYS_writev: return stack::writev(f, fd, v, count);
    case SYS_preadv: return stack::preadv(f, fd, v, count, d);
    case SYS_pwritev: return stack::pwritev(f, fd, v, count, d);
    case SYS_preadv2: return stack::preadv2(f, fd, v, count, d, static_cast<int>(flags));
    case SYS_pwritev2: return stack::pwritev2(f, fd, v, count, d, static_cast<int>(flags));
    case SYS_lseek: return stack::lseek(f, fd, b, count);
    default: return stack::fsync(f, fd, n == SYS_fdatasync);
  }
}

// libc's function of the same call may be a cancellation point, which syscall() is not.
class Uncancelled {
 public:
  Uncancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Uncancelled() { pthread_setcancelstate(before_, nullptr); }
  Uncancelled(const Uncancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

template <typename To>
To argument(long given) {
  if constexpr (std::is_pointer_v<To>) return reinterpret_cast<To>(given);
  else return static_cast<To>(given);
}

// The call by number that this thread answers by a hook, and where it stands. The function that the
// hook calls may be another library's, which makes the system call in its turn: it gets the kernel.
// A call that stands no deeper is not its part: a handler has jumped out of the hook.
struct Answered {
  long number;
  const char* frame;
};
WEIR_THREAD Answered answered = {-1, nullptr};

class Within {
 public:
  explicit Within(long n) : before_(answered) { answered = {n, frame()}; }
  ~Within() { answered = before_; }
  Within(const Within&) = delete;
  static bool is_again(long n) { return answered.number == n && frame() < answered.frame; }

 private:
  static WEIR_INLINE const char* frame() {
    return static_cast<const char*>(__builtin_frame_address(0));
  }
  const Answered before_;
};

template <typename Result, typename... Types, typename... Given>
long by_hook(Result (*hook)(Types...), Given... given) {
  const Uncancelled uncancelled;
  if constexpr (std::is_void_v<Result>) return hook(argument<Types>(given)...), 0;
  else if constexpr (std::is_pointer_v<Result>)
    return reinterpret_cast<long>(hook(argument<Types>(given)...));
  else return hook(argument<Types>(given)...);
}

// A function that the C library is too old to have, by its number.
template <long kNumber, typename Result, typename... Types>
Result by_number(Types... given) {
  [[maybe_unused]] const auto raw = [](auto one) {
    if constexpr (std::is_pointer_v<decltype(one)>) return reinterpret_cast<long>(one);
    else return static_cast<long>(one);
  };
  long result = base::system_call(kNumber, raw(given)...);
  if (base::failed(result)) {
    errno = static_cast<int>(-result);
    result = -1;
  }
  if constexpr (!std::is_void_v<Result>) return argument<Result>(result);
}
template <long kNumber, typename Result, typename... Types>
void* function_of(Result (*)(Types...)) {
  return reinterpret_cast<void*>(by_number<kNumber, Result, Types...>);
}

template <typename Real>
int open_layered(Op op, int directory, long path, int flags, long mode, Real real) {
  const auto* name = reinterpret_cast<const char*>(path);
  const int fd = opening(op, directory, name, flags, [&] {
    return stack::opening(directory, name, flags, static_cast<unsigned>(mode),
                          [&] { return static_cast<int>(real()); });
  });
  if (fd >= 0 && recording()) stack::set_name(fd, descriptors[fd < kDescriptors ? fd : 0].file);
  return fd;
}

struct OpenHow {
  uint64_t flags, mode, resolve;
};

// A path that is resolved in another way than openat's, by the kernel alone: the file gets the
// layers of its name when it is open.
template <typename Real>
int open_resolved(int directory, long path, const OpenHow& how, Real real) {
  const auto* name = reinterpret_cast<const char*>(path);
  const int flags = static_cast<int>(how.flags);
  const base::Scratch room;
  char* const whole = room.data();
  char link[32];
  const auto link_of = [&](long fd) {
    base::Writer(link, sizeof link).add("/proc/self/fd/").add_number(static_cast<uint64_t>(fd));
  };
  if (stack::active() &&
      (flags & O_TRUNC) != 0) {  // others hand down what they hold before it is cut, not after
    const OpenHow look{O_PATH | O_CLOEXEC | (how.flags & O_NOFOLLOW), 0, how.resolve};
    const base::HoldsDescriptor held;
    const long fd =
        base::system_call(kOpenat2, directory, path, reinterpret_cast<long>(&look), sizeof look);
    if (!base::failed(fd)) {
      link_of(fd);
      stack::settle(AT_FDCWD, link);
      base::close_fd(static_cast<int>(fd));
    }
  }
  return opening(Op::kOpenat, directory, name, flags, [&] {
    const int fd = static_cast<int>(real());
    if (fd < 0 || whole == nullptr || (flags & (O_PATH | O_DIRECTORY)) != 0) return fd;
    link_of(fd);
    const long size = base::read_link(link, whole, base::Scratch::kBytes - 1);
    if (base::failed(size)) return fd;
    whole[size] = 0;
    return stack::opening_as_made(whole, flags, [=] { return fd; });
  });
}

// Without a way of resolving paths this is openat, but for what it refuses.
template <typename Real>
int open_by_how(int directory, long path, long how_at, long bytes, Real real) {
  const auto at = static_cast<uintptr_t>(how_at);
  if (bytes < static_cast<long>(sizeof(OpenHow)) || !base::can_read(at) ||
      !base::can_read(at + sizeof(OpenHow) - 1)) {
    return static_cast<int>(real());
  }
  const OpenHow how = *reinterpret_cast<const OpenHow*>(how_at);
  const bool makes = (how.flags & O_CREAT) != 0 || (how.flags & O_TMPFILE) == O_TMPFILE;
  if (how.flags > INT_MAX || how.mode > 07777 || (how.mode != 0 && !makes))
    return static_cast<int>(real());
  if (how.resolve != 0) return open_resolved(directory, path, how, real);
  return open_layered(Op::kOpenat, directory, path, static_cast<int>(how.flags),
                      static_cast<long>(how.mode), real);
}

long wait_by_hook(long type, long which, long about, long options) {
  const Within within(SYS_waitid);
  return by_hook(hook_waitid, type, which, about, options);
}

// Which libc's function translates, so that it is made as given.
template <typename Real>
long set_or_ask(int fd, long command, long argument, Real real) {
  if (command == F_GETOWN) return on_descriptor(Op::kFcntl, fd, kUnknownOffset, 0, real);
  const Uncancelled uncancelled;
  const Within within(SYS_fcntl);
  return hook_fcntl(fd, static_cast<int>(command), argument);
}

// Without a path the descriptor's own file, of which libc has functions of their own.
template <typename Real>
long set_times(long n, long directory, long path, long to, long flags, Real real) {
  const Within within(n);
  if (n == SYS_futimesat)
    return path == 0 ? by_hook(hook_futimes, directory, to)
                     : by_hook(hook_futimesat, directory, path, to);
  if (path != 0) return by_hook(hook_utimensat, directory, path, to, flags);
  return flags == 0 ? by_hook(hook_futimens, directory, to) : real();
}

// io_submit, io_getevents, io_pgetevents and io_destroy, of programs that do without libaio.
template <typename Call>
long asynchronous(long n, long a, long b, long c, long d, Call call) {
  if (within_aio_library) return call(b);
  if (n == SYS_io_destroy) {
    context_ends(static_cast<uint64_t>(a));
    return call(b);
  }
  if (n == SYS_io_submit) {
    Submission submission(static_cast<uint64_t>(a), b, reinterpret_cast<iocb* const*>(c));
    if (submission.is_refused()) {
      errno = EINVAL;
      return -1;
    }
    const long result = call(submission.count());
    submission.end(result, result < 0 ? errno : 0);
    return result;
  }
  if (!recording()) return call(b);
  const uint64_t start = weir::base::ticks();
  const long result = call(b);
  collected(start, reinterpret_cast<const io_event*>(d), result, result < 0 ? errno : 0);
  return result;
}

// Bytes through a descriptor, its position, its durability. d: the offset; f: flags of preadv2 and
// pwritev2.
template <typename Real>
long moving(long n, int fd, long b, long c, long d, long f, Real call) {
  const auto size = static_cast<uint64_t>(c);
  const auto* const v = reinterpret_cast<const iovec*>(b);
  const int count = static_cast<int>(c);
  const bool is_count = c >= 0 && c <= INT_MAX;  // of a vector; else it is the kernel's to refuse
  const auto moved = [&]() -> long {
    stack::File* const file = stack::file_at(fd);
    return WEIR_LIKELY(file == nullptr) ? call() : move_layered(file, n, fd, b, c, d, f);
  };
  const auto moved_v = [&]() -> long { return is_count ? moved() : call(); };
  switch (n) {
    case SYS_read: return transfer(Op::kRead, false, fd, size, kImplicit, moved);
    case SYS_write: return transfer(Op::kWrite, true, fd, size, kImplicit, moved);
    case SYS_pread64: return transfer(Op::kPread, false, fd, size, d, moved);
    case SYS_pwrite64: return transfer(Op::kPwrite, true, fd, size, d, moved);
    case SYS_readv: return vector_transfer(Op::kReadv, false, fd, v, count, kImplicit, moved_v);
    case SYS_writev: return vector_transfer(Op::kWritev, true, fd, v, count, kImplicit, moved_v);
    case SYS_preadv: return vector_transfer(Op::kPreadv, false, fd, v, count, d, moved_v);
    case SYS_pwritev: return vector_transfer(Op::kPwritev, true, fd, v, count, d, moved_v);
    case SYS_preadv2: return vector_transfer(Op::kPreadv2, false, fd, v, count, d, moved_v);
    case SYS_pwritev2: return vector_transfer(Op::kPwritev2, true, fd, v, count, d, moved_v);
    case SYS_lseek: return seeking(fd, moved);
    default:
      return on_descriptor(n == SYS_fsync ? Op::kFsync : Op::kFdatasync, fd, kUnknownOffset, 0,
                           moved);
  }
}

template <typename Real>
long acting_as_another(Real call) {
  base::credentials_change();
  const long result = call();
  base::credentials_change();
  return result;
}

template <typename Real>
long setting_up_ring(Real call) {
  if (within_uring_library) return call();
  return on_descriptor(Op::kIoUringSetup, -1, kUnknownOffset, 0, [&]() -> long {
    if (stack::leave_for_ring()) return call();
    errno = EPERM;
    return -1;
  });
}

}  // namespace

void* weir::hook::function_by_number(Slot slot) {
#define WEIR_NUMBER(number, symbol)
#define WEIR_NUMBER_AS(number, result, symbol, types, ...) \
  if (slot == kSlot_##symbol) return function_of<number>(hook_##symbol);
#include "hook/table_numbers.def"
#undef WEIR_NUMBER_AS
#undef WEIR_NUMBER
  return nullptr;
}

extern "C" {

__attribute__((visibility("default"))) long hook_syscall(long, ...) __asm__("syscall");

constinit void* weir_real_syscall = nullptr;
// A bit for each number below 512 that weir_direct_call wants to see; none before libc's function
// is known.
constinit uint64_t weir_direct_numbers[8] = {};

void weir_find_direct() {
  weir_real_syscall = reinterpret_cast<void*>(real<Direct>(kSlot_syscall));
#define WEIR_NUMBER(number, symbol) \
  weir_direct_numbers[number / 64] |= uint64_t{1} << (number % 64);
#define WEIR_NUMBER_AS(number, ...) WEIR_NUMBER(number, )
#include "hook/table_numbers.def"
#undef WEIR_NUMBER_AS
#undef WEIR_NUMBER
}

// Of clone and clone3: whether the child has a copy of the memory and goes on where its parent
// does, so that a frame of ours may stand there. One that begins on a stack of its own has a copy
// of files which have left their layers, and no more.
bool weir_direct_copies(long n, long a, long b) {
  const auto* const how = reinterpret_cast<const uint64_t*>(a);
  constexpr long kFlags = 0, kStack = 5, kBytes = 64;  // struct clone_args
  if (n == kClone3 &&
      (b < kBytes || !weir::base::can_read(a) || !weir::base::can_read(a + kBytes - 8)))
    return false;
  const uint64_t flags = n == SYS_clone ? static_cast<uint64_t>(a) : how[kFlags];
  const uint64_t child_stack = n == SYS_clone ? static_cast<uint64_t>(b) : how[kStack];
  if ((flags & (CLONE_VM | CLONE_THREAD)) == CLONE_VM) stack::before_spawn(false);
  if ((flags & CLONE_VM) != 0) return false;
  if (child_stack == 0) return true;
  before_fork();
  after_fork_in_parent();
  return false;
}

long weir_direct_call(long n, long a, long b, long c, long d, long e, long f) {
  const auto call = [&] {
    return reinterpret_cast<Direct>(weir_real_syscall)(n, a, b, c, d, e, f);
  };
  const int fd = static_cast<int>(a);
  if (WEIR_UNLIKELY(Within::is_again(n))) return call();
  switch (n) {
    case SYS_read: case SYS_write: case SYS_pread64: case SYS_pwrite64:
    case SYS_readv: case SYS_writev: case SYS_preadv: case SYS_pwritev:
    case SYS_preadv2: case SYS_pwritev2: case SYS_lseek: case SYS_fsync:
    case SYS_fdatasync: return moving(n, fd, b, c, d, f, call);
    case SYS_open: return open_layered(Op::kOpen, AT_FDCWD, a, static_cast<int>(b), c, call);
    case SYS_openat: return open_layered(Op::kOpenat, fd, b, static_cast<int>(c), d, call);
    case kOpenat2: return open_by_how(fd, b, c, d, call);
    case SYS_creat:
      return open_layered(Op::kCreat, AT_FDCWD, a, O_WRONLY | O_CREAT | O_TRUNC, b, call);
    case SYS_close: return closing(fd, call);
    case SYS_close_range:
      return closing_range(static_cast<unsigned>(a), static_cast<unsigned>(b),
                           (c & kOnlyCloseOnExec) == 0, [&](unsigned from, unsigned to) {
                             return static_cast<int>(reinterpret_cast<Direct>(weir_real_syscall)(
                                 n, from, to, c, 0, 0, 0));
                           });
    case SYS_dup: return copying(Op::kDup, fd, -1, call);
    case SYS_dup2: return copying(Op::kDup2, fd, static_cast<int>(b), call);
    case SYS_dup3: return copying(Op::kDup3, fd, static_cast<int>(b), call);
    case SYS_fcntl: return set_or_ask(fd, b, c, call);
    case SYS_ioctl: {
      const Within within(n);
      return hook_ioctl(fd, static_cast<unsigned long>(b), c);
    }
    case SYS_utimensat: case SYS_futimesat: return set_times(n, a, b, c, d, call);
    // libc's function has no room for the fifth argument.
    case SYS_waitid: return e == 0 ? wait_by_hook(a, b, c, d) : call();
    case SYS_setuid: case SYS_setreuid: case SYS_setresuid:
    case SYS_setgid: case SYS_setregid: case SYS_setresgid:
    case SYS_unshare: case SYS_setns: return acting_as_another(call);  // the thread alone
    case SYS_rt_sigaction:
      if (b != 0) base::before_handler(static_cast<int>(a));
      return call();
    case SYS_seccomp:
    case SYS_prctl:
      without_clock(n == SYS_prctl                         ? a
                    : a == 0 /* SECCOMP_SET_MODE_STRICT */ ? PR_SET_SECCOMP
                                                           : 0,
                    n == SYS_prctl ? b : 1);
      return filtering(
          n == SYS_seccomp ? a <= 1 /* SECCOMP_SET_MODE_FILTER */ : a == PR_SET_SECCOMP, call);
    case kIoUringSetup: return setting_up_ring(call);
    case SYS_io_submit: case SYS_io_getevents: case kIoPgetevents: case SYS_io_destroy:
      return asynchronous(n, a, b, c, d, [&](long second) {
        return reinterpret_cast<Direct>(weir_real_syscall)(n, a, second, c, d, e, f);
      });
    case SYS_mmap: return by_hook(map_by_number, a, b, c, d, e, f);
    case SYS_munmap: return by_hook(unmap_by_number, a, b);
    case SYS_fork: case SYS_clone: case kClone3: return forking(call);
#define WEIR_NUMBER(number, symbol)
#define WEIR_NUMBER_AS(number, result, symbol, types, ...) \
  case number: { \
    const Within within(n); \
    return by_hook(hook_##symbol __VA_OPT__(,) __VA_ARGS__); \
  }
#include "hook/table_numbers.def"
#undef WEIR_NUMBER_AS
#undef WEIR_NUMBER
  }
  return call();
}
}

__asm__(R"(
  .text
  .globl syscall
  .type syscall, @function
syscall:
  endbr64
0:
  cmpq $512, %rdi
  jae 1f
  leaq weir_direct_numbers(%rip), %rax
  btq %rdi, (%rax)
  jnc 1f
  cmpq $56, %rdi
  je 3f
  cmpq $435, %rdi
  jne weir_direct_call
3:
  pushq %rdi
  pushq %rsi
  pushq %rdx
  pushq %rcx
  pushq %r8
  pushq %r9
  subq $8, %rsp
  call weir_direct_copies
  addq $8, %rsp
  popq %r9
  popq %r8
  popq %rcx
  popq %rdx
  popq %rsi
  popq %rdi
  testb %al, %al
  jnz weir_direct_call
1:
  movq weir_real_syscall(%rip), %rax
  testq %rax, %rax
  jz 2f
  jmp *%rax
2:
  pushq %rdi
  pushq %rsi
  pushq %rdx
  pushq %rcx
  pushq %r8
  pushq %r9
  subq $8, %rsp
  call weir_find_direct
  addq $8, %rsp
  popq %r9
  popq %r8
  popq %rcx
  popq %rdx
  popq %rsi
  popq %rdi
  jmp 0b
  .size syscall, .-syscall
)");

#else

void* weir::hook::function_by_number(Slot) { return nullptr; }

#endif
