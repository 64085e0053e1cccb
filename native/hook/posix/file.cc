// SPDX-License-Identifier: Apache-2.0
// Calls on an open file that move no bytes: durability, size, advice, locks.
#include <fcntl.h>

#include "hook/observe.h"
#include "layers/machinery/stack/cancel.h"
#include "layers/machinery/stack/carried_locks.h"
#include "layers/machinery/stack/in_memory.h"
#include "layers/machinery/stack/park.h"
#include "layers/machinery/stack/posix.h"
#include "layers/machinery/stack/process.h"
#include "layers/machinery/stack/table.h"

using namespace weir::hook;
namespace base = weir::base;
namespace stack = weir::stack;

namespace {

uint64_t length(off_t n) { return n < 0 ? 0 : static_cast<uint64_t>(n); }
uint64_t place(off_t at) { return at < 0 ? kUnknownOffset : static_cast<uint64_t>(at); }

// For calls that return an error number instead of setting errno.
template <typename Real>
int numbered(Op op, int fd, off_t at, off_t n, Real real) {
  if (WEIR_UNLIKELY(!recording())) return real();
  const uint64_t start = base::ticks();
  const int result = real();
  Call call{op, Layer::posix, 0, 0, file_of(fd), start, base::ticks(), place(at), clip(length(n))};
  if (result != 0) {
    call.flags |= weir::wire::kError;
    call.error = static_cast<uint8_t>(result);
  }
  below_fortran(call, descriptor(fd));
  record_call(call);
  return result;
}

}  // namespace

#define WEIR_FSYNC(symbol, op, data_only)                                           \
  WEIR_HOOK(int, symbol, int fd) {                                                  \
    return on_descriptor(Op::op, fd, kUnknownOffset, 0, [&] {                       \
      if (stack::File* const f = stack::file_at(fd); WEIR_UNLIKELY(f != nullptr)) { \
        stack::cancellation_point();                                                \
        return stack::fsync(f, fd, data_only);                                      \
      }                                                                             \
      return WEIR_REAL(symbol)(fd);                                                 \
    });                                                                             \
  }
WEIR_FSYNC(fsync, kFsync, false)
WEIR_FSYNC(fdatasync, kFdatasync, true)

WEIR_HOOK(int, syncfs, int fd) {
  return on_descriptor(Op::kSyncfs, fd, kUnknownOffset, 0, [&] {
    stack::flush_all();
    return WEIR_REAL(syncfs)(fd);
  });
}

WEIR_HOOK(void, sync) {
  on_descriptor(Op::kSyncAll, -1, kUnknownOffset, 0, [] {
    stack::flush_all();
    WEIR_REAL(sync)();
    return 0;
  });
}

WEIR_HOOK(int, sync_file_range, int fd, off_t at, off_t n, unsigned flags) {
  return on_descriptor(Op::kSyncFileRange, fd, place(at), length(n), [&] {
    return stack::through_kernel(fd, [&] { return WEIR_REAL(sync_file_range)(fd, at, n, flags); });
  });
}

WEIR_HOOK(int, flock, int fd, int operation) {
  return on_descriptor(Op::kFlock, fd, kUnknownOffset, 0, [&] {
    stack::before_waiting(fd);
    int result = WEIR_REAL(flock)(fd, operation);
    if (result == 0 && stack::lock_was_of_memory(fd)) result = WEIR_REAL(flock)(fd, operation);
    stack::after_waiting(fd);
    return result;
  });
}

// A lock from the position on.
#define WEIR_LOCKF(symbol)                                                \
  WEIR_HOOK(int, symbol, int fd, int what, off_t n) {                     \
    if (stack::any_parked()) stack::drop_same_file(fd);                   \
    if (what != F_TEST && stack::active()) stack::note_process_lock(fd);  \
    stack::File* const f = stack::file_at(fd);                            \
    if (WEIR_LIKELY(f == nullptr)) return WEIR_REAL(symbol)(fd, what, n); \
    if (what == F_TEST && f->in_memory) stack::follow_in_memory(f);       \
    if (n != 0 && what != F_ULOCK && what != F_TEST && !f->shares)        \
      stack::leave(f, stack::Reason::kLocked);                            \
    stack::before_locking_from_position(fd);                              \
    int result = WEIR_REAL(symbol)(fd, what, n);                          \
    if (result == 0 && what != F_TEST && stack::lock_was_of_memory(fd))   \
      result = WEIR_REAL(symbol)(fd, what, n);                            \
    stack::after_waiting(fd);                                             \
    return result;                                                        \
  }
WEIR_LOCKF(lockf)
WEIR_LOCKF(lockf64)

#define WEIR_FTRUNCATE(symbol)                                                    \
  WEIR_HOOK(int, symbol, int fd, off_t size) {                                    \
    return on_descriptor(Op::kFtruncate, fd, kUnknownOffset, length(size), [&] {  \
      if (stack::File* const f = stack::file_at(fd); WEIR_UNLIKELY(f != nullptr)) \
        return stack::ftruncate(f, fd, size);                                     \
      return WEIR_REAL(symbol)(fd, size);                                         \
    });                                                                           \
  }
WEIR_FTRUNCATE(ftruncate)
WEIR_FTRUNCATE(ftruncate64)

namespace {

// fallocate (-1 and errno) and posix_fallocate (an errno).
template <typename Real>
int allocating(int fd, off_t at, off_t n, Real real) {
  off_t end = 0;
  if (at >= 0 && n > 0 && !__builtin_add_overflow(at, n, &end))
    stack::before_growth(fd, static_cast<uint64_t>(end));
  const int result = stack::through_kernel(fd, real);
  const bool is_refused = result == EPERM || (result == -1 && errno == EPERM);
  return WEIR_UNLIKELY(is_refused) && stack::was_sealed(fd) ? real() : result;
}

}  // namespace

#define WEIR_FALLOCATE(symbol)                                                                   \
  WEIR_HOOK(int, symbol, int fd, int mode, off_t at, off_t n) {                                  \
    return on_descriptor(Op::kFallocate, fd, place(at), length(n), [&] {                         \
      if (WEIR_LIKELY(!stack::is_transformed(fd)))                                               \
        return allocating(fd, at, n, [&] { return WEIR_REAL(symbol)(fd, mode, at, n); });        \
      errno = EOPNOTSUPP;                                                                        \
      return -1;                                                                                 \
    });                                                                                          \
  }
WEIR_FALLOCATE(fallocate)
WEIR_FALLOCATE(fallocate64)

#define WEIR_POSIX_FALLOCATE(symbol)                                                   \
  WEIR_HOOK(int, symbol, int fd, off_t at, off_t n) {                                  \
    return numbered(Op::kPosixFallocate, fd, at, n, [&] {                              \
      if (stack::is_transformed(fd)) return EOPNOTSUPP;                                \
      return allocating(fd, at, n, [&] { return WEIR_REAL(symbol)(fd, at, n); });      \
    });                                                                                \
  }
WEIR_POSIX_FALLOCATE(posix_fallocate)
WEIR_POSIX_FALLOCATE(posix_fallocate64)

#define WEIR_FADVISE(symbol)                                               \
  WEIR_HOOK(int, symbol, int fd, off_t at, off_t n, int advice) {          \
    return numbered(Op::kPosixFadvise, fd, at, n,                          \
                    [&] { return WEIR_REAL(symbol)(fd, at, n, advice); }); \
  }
WEIR_FADVISE(posix_fadvise)
WEIR_FADVISE(posix_fadvise64)
