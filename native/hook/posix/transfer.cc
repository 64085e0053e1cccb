// SPDX-License-Identifier: Apache-2.0
// Bytes through descriptors: read, write, their positioned and vectored forms, and lseek.
#include <unistd.h>

#include "hook/observe.h"
#include "layers/machinery/stack/cancel.h"
#include "layers/machinery/stack/posix.h"

using namespace weir::hook;
namespace base = weir::base;
namespace stack = weir::stack;

namespace weir::hook {

void record_any_transfer(Op op, bool writes, int fd, uint64_t wanted, int64_t offset,
                         ssize_t result, Span span) {
  Call call{op, Layer::posix, 0, 0, file_of(fd), span.start, span.end, kUnknownOffset, 0};
  Descriptor* d = descriptor(fd);
  if (result < 0) {
    set_outcome(call, true);
    call.size = clip(wanted);
    if (offset >= 0) call.offset = static_cast<uint64_t>(offset);
  } else {
    call.size = static_cast<uint64_t>(result);
    if (call.size < wanted) call.flags |= wire::kShort;
    call.offset = offset >= 0 ? static_cast<uint64_t>(offset) : advance(d, call.size, writes);
  }
  below_fortran(call, d);
  record_call(call);
}

}  // namespace weir::hook

namespace {

constexpr bool kReads = false;
constexpr bool kWrites = true;

}  // namespace

// A file under layers answers itself; any other goes on to libc.
#define WEIR_LAYERED(fd, layered, ...)                                          \
  [&] {                                                                         \
    if (stack::File* const f = stack::file_at(fd); WEIR_UNLIKELY(f != nullptr)) \
      return stack::layered;                                                    \
    return __VA_ARGS__;                                                         \
  }
// The same of a call that is a cancellation point in libc.
#define WEIR_CANCELLED(fd, layered, ...)                                              \
  [&] {                                                                               \
    if (stack::File* const f = stack::file_at(fd); WEIR_UNLIKELY(f != nullptr)) {     \
      stack::cancellation_point();                                                    \
      return stack::layered;                                                          \
    }                                                                                 \
    return __VA_ARGS__;                                                               \
  }

// The hooks that programs call most: without a trace a file costs a few loads and a jump, to the
// function when no layer takes part in the call (pass: the bit that says so), else to its layers.
// What is rare is a function of its own, so that nothing has to be saved before.
#define WEIR_FAST_PATH_HOOK(R, symbol, layered, pass, parameters, ...)                  \
  static R seen_##symbol(parameters);                                                   \
  WEIR_HOOK(R, symbol, parameters) {                                                    \
    if (WEIR_LIKELY(!tracing_enabled())) {                                              \
      const uintptr_t entry = stack::pass == stack::kSeeksPass                          \
                                  ? stack::settled_entry_at(fd)                         \
                                  : stack::entry_at(fd);                                \
      if (WEIR_LIKELY(entry == 0) || (entry & (stack::kAllPass | stack::pass)) != 0) {  \
        if (WEIR_LIKELY(WEIR_IS_FOUND(symbol))) return WEIR_FOUND(symbol)(__VA_ARGS__); \
      } else {                                                                          \
        if constexpr (stack::pass != stack::kSeeksPass) stack::cancellation_point();    \
        return stack::layered(stack::file_of_entry(entry), __VA_ARGS__);                \
      }                                                                                 \
    }                                                                                   \
    return seen_##symbol(__VA_ARGS__);                                                  \
  }                                                                                     \
  WEIR_COLD R seen_##symbol(parameters)

WEIR_FAST_PATH_HOOK(ssize_t, read, read, kReadsPass, WEIR_LIST(int fd, void* to, size_t n), fd, to,
                    n) {
  return transfer(Op::kRead, kReads, fd, n, kImplicit,
                  WEIR_CANCELLED(fd, read(f, fd, to, n), WEIR_REAL(read)(fd, to, n)));
}
WEIR_HOOK(ssize_t, __read_chk, int fd, void* to, size_t n, size_t room) {
  return transfer(Op::kRead, kReads, fd, n, kImplicit,
                  WEIR_CANCELLED(n <= room ? fd : -1, read(f, fd, to, n),
                                 WEIR_REAL(__read_chk)(fd, to, n, room)));
}
WEIR_FAST_PATH_HOOK(ssize_t, write, write, kWritesPass,
                    WEIR_LIST(int fd, const void* from, size_t n), fd, from, n) {
  return transfer(Op::kWrite, kWrites, fd, n, kImplicit,
                  WEIR_CANCELLED(fd, write(f, fd, from, n), WEIR_REAL(write)(fd, from, n)));
}

#define WEIR_PREAD(symbol)                                                              \
  WEIR_FAST_PATH_HOOK(ssize_t, symbol, pread, kReadsPass,                               \
                      WEIR_LIST(int fd, void* to, size_t n, off_t at), fd, to, n, at) { \
    return transfer(                                                                    \
        Op::kPread, kReads, fd, n, at,                                                  \
        WEIR_CANCELLED(fd, pread(f, fd, to, n, at), WEIR_REAL(symbol)(fd, to, n, at))); \
  }
WEIR_PREAD(pread)
WEIR_PREAD(pread64)

#define WEIR_PREAD_CHK(symbol)                                                    \
  WEIR_HOOK(ssize_t, symbol, int fd, void* to, size_t n, off_t at, size_t room) { \
    return transfer(Op::kPread, kReads, fd, n, at,                                \
                    WEIR_CANCELLED(n <= room ? fd : -1, pread(f, fd, to, n, at),  \
                                   WEIR_REAL(symbol)(fd, to, n, at, room)));      \
  }
WEIR_PREAD_CHK(__pread_chk)
WEIR_PREAD_CHK(__pread64_chk)

#define WEIR_PWRITE(symbol)                                                                       \
  WEIR_FAST_PATH_HOOK(ssize_t, symbol, pwrite, kWritesPass,                                       \
                      WEIR_LIST(int fd, const void* from, size_t n, off_t at), fd, from, n, at) { \
    return transfer(                                                                              \
        Op::kPwrite, kWrites, fd, n, at,                                                          \
        WEIR_CANCELLED(fd, pwrite(f, fd, from, n, at), WEIR_REAL(symbol)(fd, from, n, at)));      \
  }
WEIR_PWRITE(pwrite)
WEIR_PWRITE(pwrite64)

WEIR_HOOK(ssize_t, readv, int fd, const iovec* v, int count) {
  return vector_transfer(
      Op::kReadv, kReads, fd, v, count, kImplicit,
      WEIR_CANCELLED(fd, readv(f, fd, v, count), WEIR_REAL(readv)(fd, v, count)));
}
WEIR_HOOK(ssize_t, writev, int fd, const iovec* v, int count) {
  return vector_transfer(
      Op::kWritev, kWrites, fd, v, count, kImplicit,
      WEIR_CANCELLED(fd, writev(f, fd, v, count), WEIR_REAL(writev)(fd, v, count)));
}

#define WEIR_VECTOR_AT(symbol, op, writes, layered)                                             \
  WEIR_HOOK(ssize_t, symbol, int fd, const iovec* v, int count, off_t at) {                     \
    return vector_transfer(                                                                     \
        Op::op, writes, fd, v, count, at,                                                       \
        WEIR_CANCELLED(fd, layered(f, fd, v, count, at), WEIR_REAL(symbol)(fd, v, count, at))); \
  }
WEIR_VECTOR_AT(preadv, kPreadv, kReads, preadv)
WEIR_VECTOR_AT(preadv64, kPreadv, kReads, preadv)
WEIR_VECTOR_AT(pwritev, kPwritev, kWrites, pwritev)
WEIR_VECTOR_AT(pwritev64, kPwritev, kWrites, pwritev)

// An offset of -1 stands for the descriptor's own position (preadv2(2)), as kImplicit does here.
#define WEIR_VECTOR_2(symbol, op, writes, layered)                                      \
  WEIR_HOOK(ssize_t, symbol, int fd, const iovec* v, int count, off_t at, int flags) {  \
    return vector_transfer(Op::op, writes, fd, v, count, at,                            \
                           WEIR_CANCELLED(fd, layered(f, fd, v, count, at, flags),      \
                                          WEIR_REAL(symbol)(fd, v, count, at, flags))); \
  }
WEIR_VECTOR_2(preadv2, kPreadv2, kReads, preadv2)
WEIR_VECTOR_2(preadv64v2, kPreadv2, kReads, preadv2)
WEIR_VECTOR_2(pwritev2, kPwritev2, kWrites, pwritev2)
WEIR_VECTOR_2(pwritev64v2, kPwritev2, kWrites, pwritev2)

#define WEIR_LSEEK(symbol)                                                               \
  WEIR_FAST_PATH_HOOK(off_t, symbol, lseek, kSeeksPass,                                  \
                      WEIR_LIST(int fd, off_t offset, int whence), fd, offset, whence) { \
    return seeking(fd, WEIR_LAYERED(fd, lseek(f, fd, offset, whence),                    \
                                    WEIR_REAL(symbol)(fd, offset, whence)));             \
  }
WEIR_LSEEK(lseek)
WEIR_LSEEK(lseek64)
