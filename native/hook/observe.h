// SPDX-License-Identifier: Apache-2.0
// The shapes of a hook: call the real function between two readings of the clock, keep what
// happened, hand back its result and errno untouched. Names are looked up after the call: a bad
// pointer is then the kernel's to refuse.
#pragma once

#include <errno.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "hook/descriptors.h"
#include "hook/real.h"
#include "base/clock.h"
#include "trace/log.h"
#include "trace/process.h"

namespace weir::hook {

using trace::Call;
using trace::record_call;
using trace::recording;
using wire::kUnknownOffset;
using wire::Layer;
using wire::Op;

struct Span {
  uint64_t start, end;
};

// Flags and errno of a result: -1 (or null, as 0-is-failure callers pass it) is a failure.
inline void set_outcome(Call& call, bool failed) {
  if (WEIR_UNLIKELY(failed)) {
    call.flags |= wire::kError;
    call.error = static_cast<uint8_t>(errno < 255 ? errno : 255);
  }
}

inline void below_fortran(Call& call, const Descriptor* d) {
  if (d != nullptr) call.flags |= static_cast<uint8_t>(d->flags & kOfFortran);
}

inline uint64_t clip(uint64_t size) { return size <= kUnknownOffset ? size : kUnknownOffset; }

// Where an implicit transfer began, and moves the position on. That of a shared descriptor is
// unknown.
inline uint64_t advance(Descriptor* d, uint64_t moved, bool writes) {
  if (d == nullptr) return kUnknownOffset;
  const uint64_t at = d->position;
  if (at == kUnknownOffset) return at;
  if (writes && (d->flags & kAppend) != 0) {
    d->position = kUnknownOffset;
    return kUnknownOffset;
  }
  d->position = at + moved;
  return at;
}

inline constexpr int64_t kImplicit = -1;

// The read and write families on a descriptor. wanted: bytes asked for; offset: as given, or
// kImplicit. Here: any outcome.
WEIR_COLD void record_any_transfer(Op op, bool writes, int fd, uint64_t wanted, int64_t offset,
                                   ssize_t result, Span span);

// The usual outcome, inlined: bytes moved on a known file.
WEIR_INLINE void record_transfer(Op op, bool writes, int fd, uint64_t wanted, int64_t offset,
                                 ssize_t result, Span span) {
  const auto number = static_cast<unsigned>(fd);
  if (WEIR_LIKELY(number < kDescriptors && result >= 0)) {
    Descriptor* d = &descriptors[number];
    __asm__("" : "+r"(d));  // one register, computed once
    const uint32_t file = base::load_relaxed(&d->file);
    if (WEIR_LIKELY(file != 0)) {
      const uint64_t moved = static_cast<uint64_t>(result);
      const uint64_t at = offset >= 0 ? static_cast<uint64_t>(offset) : advance(d, moved, writes);
      const uint8_t flags =
          static_cast<uint8_t>((moved < wanted) * wire::kShort | (d->flags & kOfFortran));
      record_call(Call{op, Layer::posix, flags, 0, file, span.start, span.end, at, moved});
      return;
    }
  }
  record_any_transfer(op, writes, fd, wanted, offset, result, span);
}

template <typename Real>
WEIR_INLINE ssize_t transfer(Op op, bool writes, int fd, uint64_t wanted, int64_t offset,
                             Real real) {
  if (WEIR_UNLIKELY(!recording())) return real();
  const uint64_t start = base::ticks();
  const ssize_t result = real();
  record_transfer(op, writes, fd, wanted, offset, result, {start, base::ticks()});
  return result;
}

// False: nothing of this call is recorded, and there is no trace that a forked child could take up
// again. Two loads.
WEIR_INLINE bool tracing_enabled() {
  return (base::load_relaxed(&trace::pulse.alive) | base::load_relaxed(&trace::wanted)) != 0;
}

// Bytes a vector asks for. Called after the kernel has accepted the vector's address, or with a
// failed result.
inline uint64_t wanted_of(const iovec* v, int count, ssize_t result) {
  uint64_t sum = 0;
  if (result >= 0) {
    for (int i = 0; i < count; ++i) sum += v[i].iov_len;
  }
  return sum;
}

template <typename Real>
inline ssize_t vector_transfer(Op op, bool writes, int fd, const iovec* v, int count,
                               int64_t offset, Real real) {
  if (WEIR_UNLIKELY(!recording())) return real();
  const uint64_t start = base::ticks();
  const ssize_t result = real();
  const uint64_t end = base::ticks();
  record_transfer(op, writes, fd, wanted_of(v, count, result), offset, result, {start, end});
  return result;
}

// lseek: its result is where the descriptor stands from now on.
template <typename Real>
inline auto seeking(int fd, Real real) {
  if (WEIR_UNLIKELY(!recording())) return real();
  const uint64_t start = base::ticks();
  const auto result = real();
  Call call{Op::kLseek, Layer::posix, 0, 0, file_of(fd), start, base::ticks(), kUnknownOffset, 0};
  Descriptor* d = descriptor(fd);
  set_outcome(call, result < 0);
  if (result >= 0) {
    call.offset = static_cast<uint64_t>(result);
    if (d != nullptr && (d->flags & kShared) == 0) d->position = call.offset;
  }
  below_fortran(call, d);
  record_call(call);
  return result;
}

// The process is about to filter its system calls, and weir records it or has layers.
bool concerns_filter();
void before_filter();
// prctl(option, value): both the strict mode and PR_SET_TSC make it a crash to read the clock.
// Recording ends here.
void without_clock(long option, long value);
void without_filter();  // it was refused

// Anything else on a descriptor; failure is a negative result.
template <typename Real>
inline auto on_descriptor(Op op, int fd, uint64_t offset, uint64_t size, Real real) {
  if (WEIR_UNLIKELY(!recording())) return real();
  const uint64_t start = base::ticks();
  const auto result = real();
  Call call{op, Layer::posix, 0, 0, file_of(fd), start, base::ticks(), offset, clip(size)};
  set_outcome(call, result < 0);
  below_fortran(call, descriptor(fd));
  record_call(call);
  return result;
}

// The name of a path relative to a directory's descriptor, as the *at calls have it. The path can
// be read.
uint32_t path_at(int directory, const char* path);
// The same for a path that may lie anywhere, and end nowhere. 0: it cannot be read.
WEIR_COLD uint32_t doubtful_path_at(int directory, const char* path);

// The kernel may refuse a call before it has read the path, which then may be anything. Success and
// these errors come later.
inline bool path_was_read(const Call& call) {
  if (WEIR_LIKELY((call.flags & wire::kError) == 0)) return true;
  switch (call.error) {
    case ENOENT:
    case EEXIST:
    case ENOTDIR:
    case EISDIR:
    case EACCES:
    case ELOOP:
    case ENOTEMPTY:
    case EROFS: return true;
  }
  return false;
}

inline uint32_t name_after(const Call& call, int directory, const char* path) {
  return WEIR_LIKELY(path_was_read(call)) ? path_at(directory, path)
                                          : doubtful_path_at(directory, path);
}

// A call on a path relative to a directory (AT_FDCWD: the working directory); failure is a negative
// result.
template <typename Real>
inline auto on_path(Op op, int directory, const char* path, uint64_t size, Real real) {
  if (WEIR_UNLIKELY(!recording())) return real();
  const uint64_t start = base::ticks();
  const auto result = real();
  Call call{op, Layer::posix, 0, 0, 0, start, base::ticks(), kUnknownOffset, clip(size)};
  set_outcome(call, result < 0);
  call.file = name_after(call, directory, path);
  record_call(call);
  return result;
}

// The open family; failure is a negative result, else it is the new descriptor.
template <typename Real>
inline int opening(Op op, int directory, const char* path, int flags, Real real) {
  if (WEIR_UNLIKELY(!recording())) return real();
  const uint64_t start = base::ticks();
  const int fd = real();
  Call call{op, Layer::posix, 0, 0, 0, start, base::ticks(), kUnknownOffset, 0};
  set_outcome(call, fd < 0);
  call.file = name_after(call, directory, path);
  if (fd >= 0) opened(fd, call.file, flags);
  record_call(call);
  return fd;
}

}  // namespace weir::hook
