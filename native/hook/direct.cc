// SPDX-License-Identifier: Apache-2.0
// libc's syscall(): programs that make a system call by number. The ones that move bytes or open files are recorded like the call
// they stand for; all others go on to libc without a frame of ours on the stack (clone and vfork return twice).
// A syscall instruction in the program itself is out of reach. x86-64 alone.
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <initializer_list>

#include "hook/closing.h"
#include "hook/fork.h"
#include "hook/library/kernel_aio.h"
#include "hook/library/uring.h"
#include "layers/machinery/stack/posix.h"
#include "layers/machinery/stack/process.h"
#include "layers/machinery/stack/table.h"

#if defined(__x86_64__)

using namespace weir::hook;
namespace stack = weir::stack;

namespace {

constexpr long kClone3 = 435;

using Direct = long (*)(long, long, long, long, long, long, long);

template <typename Real>
long filtering(bool sets_a_filter, Real real) {
  if (!sets_a_filter || !concerns_filter()) return real();
  before_filter();
  const long result = real();
  if (result < 0) without_filter();
  return result;
}

// Calls on a file under layers, as libc's functions make them.
long move_layered(stack::File* f, long n, int fd, long b, long c, long d) {
  const auto size = static_cast<size_t>(c);
  switch (n) {
    case SYS_read: return stack::read(f, fd, reinterpret_cast<void*>(b), size);
    case SYS_write: return stack::write(f, fd, reinterpret_cast<void*>(b), size);
    case SYS_pread64: return stack::pread(f, fd, reinterpret_cast<void*>(b), size, d);
    case SYS_pwrite64: return stack::pwrite(f, fd, reinterpret_cast<void*>(b), size, d);
    case SYS_readv: return stack::readv(f, fd, reinterpret_cast<const iovec*>(b), static_cast<int>(c));
    case SYS_writev: return stack::writev(f, fd, reinterpret_cast<const iovec*>(b), static_cast<int>(c));
    case SYS_lseek: return stack::lseek(f, fd, b, static_cast<int>(c));
    default: return stack::fsync(f, fd, n == SYS_fdatasync);
  }
}

template <typename Real>
int open_layered(Op op, int directory, long path, int flags, long mode, Real real) {
  const auto* name = reinterpret_cast<const char*>(path);
  const int fd = opening(op, directory, name, flags, [&] {
    return stack::opening(directory, name, flags, static_cast<unsigned>(mode), [&] { return static_cast<int>(real()); });
  });
  if (fd >= 0 && recording()) stack::set_name(fd, descriptors[fd < kDescriptors ? fd : 0].file);
  return fd;
}

// Calls that are rarely made by number: the file they name leaves its layers.
void leave_named(long n, long a, long b, long c, long e) {
  stack::leave(static_cast<int>(n == SYS_mmap ? e : a), n == SYS_mmap ? stack::Reason::kMapped : stack::Reason::kUnsupported);
  if (n == SYS_sendfile) stack::leave(static_cast<int>(b), stack::Reason::kUnsupported);
  if (n == SYS_copy_file_range) stack::leave(static_cast<int>(c), stack::Reason::kUnsupported);
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

}  // namespace

extern "C" {

__attribute__((visibility("default"))) long hook_syscall(long, ...) __asm__("syscall");

constinit void* weir_real_syscall = nullptr;
// A bit for each number below 512 that weir_direct_call wants to see; none before libc's function is known.
constinit uint64_t weir_direct_numbers[8] = {};

void weir_find_direct() {
  weir_real_syscall = reinterpret_cast<void*>(real<Direct>(kSlot_syscall));
  for (const int n : {SYS_read, SYS_write, SYS_pread64, SYS_pwrite64, SYS_readv, SYS_writev, SYS_open, SYS_openat, SYS_creat, SYS_close, SYS_lseek,
                      SYS_fsync, SYS_fdatasync, SYS_close_range, SYS_dup, SYS_dup2, SYS_dup3, SYS_seccomp, SYS_prctl, 425 /* io_uring_setup */, SYS_ftruncate, SYS_fallocate, SYS_mmap, SYS_sendfile,
                      SYS_copy_file_range, SYS_fcntl, SYS_ioctl, SYS_fork,
                      SYS_clone, static_cast<int>(kClone3), SYS_io_submit, SYS_io_getevents, 333 /* io_pgetevents */, SYS_io_destroy}) {
    weir_direct_numbers[n / 64] |= uint64_t{1} << (n % 64);
  }
}

// Of clone and clone3: whether the child has a copy of the memory and goes on where its parent does, so that a frame of ours may stand
// there. One that begins on a stack of its own has a copy of files which have left their layers, and no more.
bool weir_direct_copies(long n, long a, long b) {
  const auto* const how = reinterpret_cast<const uint64_t*>(a);
  constexpr long kFlags = 0, kStack = 5, kBytes = 64;  // struct clone_args
  if (n == kClone3 && (b < kBytes || !weir::base::can_read(a) || !weir::base::can_read(a + kBytes - 8))) return false;
  const uint64_t flags = n == SYS_clone ? static_cast<uint64_t>(a) : how[kFlags];
  const uint64_t stack = n == SYS_clone ? static_cast<uint64_t>(b) : how[kStack];
  if ((flags & CLONE_VM) != 0) return false;
  if (stack == 0) return true;
  before_fork();
  after_fork_in_parent();
  return false;
}

long weir_direct_call(long n, long a, long b, long c, long d, long e, long f) {
  const auto call = [&] { return reinterpret_cast<Direct>(weir_real_syscall)(n, a, b, c, d, e, f); };
  const int fd = static_cast<int>(a);
  const auto size = static_cast<uint64_t>(c);
  const auto moved = [&]() -> long {
    stack::File* const file = stack::file_at(fd);
    return WEIR_LIKELY(file == nullptr) ? call() : move_layered(file, n, fd, b, c, d);
  };
  switch (n) {
    case SYS_read: return transfer(Op::kRead, false, fd, size, kImplicit, moved);
    case SYS_write: return transfer(Op::kWrite, true, fd, size, kImplicit, moved);
    case SYS_pread64: return transfer(Op::kPread, false, fd, size, d, moved);
    case SYS_pwrite64: return transfer(Op::kPwrite, true, fd, size, d, moved);
    case SYS_open: return open_layered(Op::kOpen, AT_FDCWD, a, static_cast<int>(b), c, call);
    case SYS_openat: return open_layered(Op::kOpenat, fd, b, static_cast<int>(c), d, call);
    case SYS_creat: return open_layered(Op::kCreat, AT_FDCWD, a, O_WRONLY | O_CREAT | O_TRUNC, b, call);
    case SYS_lseek: return seeking(fd, moved);
    case SYS_fsync: return on_descriptor(Op::kFsync, fd, kUnknownOffset, 0, moved);
    case SYS_fdatasync: return on_descriptor(Op::kFdatasync, fd, kUnknownOffset, 0, moved);
    case SYS_seccomp:
    case SYS_prctl:
      without_clock(n == SYS_prctl ? a : a == 0 /* SECCOMP_SET_MODE_STRICT */ ? PR_SET_SECCOMP : 0, n == SYS_prctl ? b : 1);
      return filtering(n == SYS_seccomp ? a <= 1 /* SECCOMP_SET_MODE_FILTER */ : a == PR_SET_SECCOMP, call);
    case 425:
      if (within_uring_library) return call();
      return on_descriptor(Op::kIoUringSetup, -1, kUnknownOffset, 0, [&]() -> long {
        if (stack::leave_for_ring()) return call();
        errno = EPERM;
        return -1;
      });
    case SYS_ftruncate:
    case SYS_fallocate:
    case SYS_mmap:
    case SYS_sendfile:
    case SYS_copy_file_range:
    case SYS_fcntl:
    case SYS_ioctl:
      leave_named(n, a, b, c, e);
      return call();
    case SYS_io_submit:
    case SYS_io_getevents:
    case 333:
    case SYS_io_destroy:
      return asynchronous(n, a, b, c, d, [&](long second) { return reinterpret_cast<Direct>(weir_real_syscall)(n, a, second, c, d, e, f); });
    case SYS_fork:
    case SYS_clone:
    case kClone3: return forking(call);
    case SYS_close: return closing(fd, call);
    case SYS_close_range:
      return closing_range(static_cast<unsigned>(a), static_cast<unsigned>(b), (c & kOnlyCloseOnExec) == 0,
                           [&](unsigned from, unsigned to) { return static_cast<int>(reinterpret_cast<Direct>(weir_real_syscall)(n, from, to, c, 0, 0, 0)); });
    case SYS_dup: return copying(Op::kDup, fd, -1, call);
    case SYS_dup2: return copying(Op::kDup2, fd, static_cast<int>(b), call);
    case SYS_dup3: return copying(Op::kDup3, fd, static_cast<int>(b), call);
    case SYS_readv:
    case SYS_writev: {
      const bool writes = n == SYS_writev;
      return vector_transfer(writes ? Op::kWritev : Op::kReadv, writes, fd, reinterpret_cast<const iovec*>(b), static_cast<int>(c), kImplicit, moved);
    }
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

#endif
