// SPDX-License-Identifier: Apache-2.0
// The shapes of a hook on a stream of the C library. Decides which file a stream is, how many bytes
// a call moved and whether it failed; reads the public fields of FILE (bits/types/struct_FILE.h),
// changes none, and calls no function on the stream.
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "hook/observe.h"

namespace weir::hook {

// FILE::_flags as glibc's libio.h has them; two of them are in the public header too.
inline constexpr int kNoReads = 0x4;
inline constexpr int kNoWrites = 0x8;
inline constexpr int kWriting = 0x800;
inline constexpr int kEofSeen = 0x10;
inline constexpr int kErrorSeen = 0x20;
inline constexpr int kInBackup = 0x100;
inline constexpr int kFileBuffer = 0x2000;

// The descriptor below a stream. Negative: none (fmemopen, open_memstream, fopencookie), so the
// stream is not a file.
inline int descriptor_of(const FILE* f) {
  return WEIR_LIKELY((f->_flags & kFileBuffer) != 0) ? f->_fileno : -1;
}

// First call on a stream whose descriptor was followed so far: buffering moves its position out of
// step with the calls.
WEIR_COLD uint32_t meet_stream(int fd);
// The stream was opened by the C library itself: path and mode as given to fopen.
void opened_stream(int fd, uint32_t file, const char* mode);

inline uint32_t file_of_stream(int fd) {
  const Descriptor* d = descriptor(fd);
  if (WEIR_UNLIKELY(d == nullptr)) return 0;
  const uint32_t file = base::load_relaxed(&d->file);
  return WEIR_LIKELY(file != 0 && (d->flags & kShared) != 0) ? file : meet_stream(fd);
}

// One call on a stream. outcome(call, result) fills size, flags and error of the record after the
// call.
template <typename Real, typename Outcome>
inline auto on_stream(Op op, FILE* f, Real real, Outcome outcome) {
  if (WEIR_UNLIKELY(!recording())) return real();
  const uint64_t start = base::ticks();
  const auto result = real();
  const uint64_t end = base::ticks();
  const int fd = descriptor_of(f);
  if (WEIR_UNLIKELY(fd < 0)) return result;
  Call call{op, Layer::stdio, 0, 0, file_of_stream(fd), start, end, kUnknownOffset, 0};
  outcome(call, result);
  record_call(call);
  return result;
}

// A read that gave nothing: the end of the file or an error. The mark of an error may be an older
// one, that of the end never is: glibc does not read past it.
inline void nothing_read(Call& call, const FILE* f, uint64_t wanted) {
  if ((f->_flags & kEofSeen) == 0) {
    set_outcome(call, true);
    call.size = clip(wanted);
  } else {
    call.flags |= wire::kShort;
  }
}

inline void nothing_written(Call& call, uint64_t wanted) {
  set_outcome(call, true);
  call.size = clip(wanted);
}

// Outcome of a call that gives a negative result on failure and moves nothing.
inline constexpr auto negative_fails = [](Call& call, auto result) {
  set_outcome(call, result < 0);
};

// Bytes that a call takes out of a stream's read buffer, by its pointer before and after. A refill
// is seen where the buffer's end moved or the pointer went back; one that leaves no such mark, and
// every refill but the last, is not counted: a lower bound, exact for calls that read less than a
// buffer. Wide streams count in another buffer: 0.
class BufferWatch {
 public:
  explicit BufferWatch(const FILE* f)
      : at_(f->_IO_read_ptr), end_(f->_IO_read_end), usable_(usable(f)) {}

  uint64_t taken(const FILE* f) const {
    if (!usable_ || !usable(f)) return 0;
    const char* now = f->_IO_read_ptr;
    if (f->_IO_read_end == end_ && now >= at_) return static_cast<uint64_t>(now - at_);
    return static_cast<uint64_t>(end_ - at_) + static_cast<uint64_t>(now - f->_IO_read_base);
  }

 private:
  static bool usable(const FILE* f) { return f->_mode <= 0 && (f->_flags & kInBackup) == 0; }

  const char* at_;
  const char* end_;
  bool usable_;
};

// Bytes in a stream's read buffer that the program has not read, around a call that may pass over
// them or fetch others. What the system gave a stream is what the program read, what was passed
// over, and what lies in the buffer: so the kernel's figures can be compared.
class Unread {
 public:
  explicit Unread(const FILE* f)
      : at_(f->_IO_read_ptr),
        end_(f->_IO_read_end),
        offset_(f->_offset),
        written_((f->_flags & kWriting) != 0) {}

  int64_t bytes() const { return end_ - at_; }
  // After a seek. Where the buffer was filled anew the stream stands at another offset of the
  // system's.
  int64_t passed_over(const FILE* f) const {
    const bool is_filled = written_ || f->_offset != offset_ || f->_IO_read_end != end_;
    // A stream that is written, too, drops what was fetched with the next write, which is no seek:
    // all of it counts at once.
    if ((f->_flags & (kNoReads | kNoWrites)) == 0)
      return is_filled ? f->_IO_read_end - f->_IO_read_base + in_vain(f) : 0;
    if (!is_filled) return f->_IO_read_ptr - at_;
    return bytes() + (f->_IO_read_ptr - f->_IO_read_base) + in_vain(f);
  }

 private:
  // A seek to behind the end of the file reads what there is of the block, and drops it: no more
  // than the block's bytes before the target.
  static int64_t in_vain(const FILE* f) {
    const int64_t block = f->_IO_buf_end - f->_IO_buf_base;
    return f->_IO_read_end == f->_IO_read_base && block > 0 && f->_offset > 0 ? f->_offset % block
                                                                              : 0;
  }

  const char* at_;
  const char* end_;
  int64_t offset_;
  bool written_;
};

inline void count_passed_over(int64_t bytes) {
  if (bytes != 0 && recording() && !trace::thread_log.in_vfork_child)
    trace::process().count_passed_over(bytes);
}

}  // namespace weir::hook

// Defines a form with `...`: shape is what observes it, the rest calls the real function that takes
// a list, `more`.
#define WEIR_VARIADIC(symbol, parameters, shape, ...)                   \
  WEIR_HOOK(int, symbol, parameters, ...) {                             \
    va_list more;                                                       \
    va_start(more, format);                                             \
    const int result = shape([&] { return __VA_ARGS__; });              \
    va_end(more);                                                       \
    return result;                                                      \
  }
