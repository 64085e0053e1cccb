// SPDX-License-Identifier: Apache-2.0
// Where a stream stands, and its buffer: seek, tell, rewind, flush, setvbuf.
#include "hook/stdio/stream.h"

using namespace weir::hook;
namespace wire = weir::wire;
using weir::trace::thread_log;

namespace {

// After a seek glibc has the position of the stream. Wide streams count in another buffer.
uint64_t position_of(const FILE* f) {
  if (f->_mode > 0 || f->_offset < 0 || f->_IO_write_ptr != f->_IO_write_base)
    return kUnknownOffset;
  return static_cast<uint64_t>(f->_offset - (f->_IO_read_end - f->_IO_read_ptr));
}

template <typename Real>
inline int seeking(FILE* f, int64_t offset, int whence, Real real) {
  const Unread before(f);
  const int sought = on_stream(Op::kFseek, f, real, [=](Call& call, int result) {
    set_outcome(call, result != 0);
    if (result != 0) return;
    call.offset = whence == SEEK_SET ? static_cast<uint64_t>(offset) : position_of(f);
  });
  if (descriptor_of(f) >= 0) count_passed_over(before.passed_over(f));
  return sought;
}

template <typename Real>
inline int64_t telling(FILE* f, Real real) {
  return on_stream(Op::kFtell, f, real, [](Call& call, int64_t result) {
    set_outcome(call, result < 0);
    if (result >= 0) call.offset = static_cast<uint64_t>(result);
  });
}

// What was read ahead goes back: the next read fetches it once more.
template <typename Real>
inline int flushing(FILE* f, Real real) {
  const Unread before(f);
  const int result = on_stream(Op::kFflush, f, real, negative_fails);
  if (descriptor_of(f) >= 0) count_passed_over(before.bytes() - Unread(f).bytes());
  return result;
}

template <typename Real>
inline int on_all_streams(Op op, Real real) {
  if (WEIR_UNLIKELY(!recording())) return real();
  const uint8_t before = thread_log.flags_below;
  // What the functions of cookie streams do lies within this call.
  thread_log.flags_below = before | wire::kNested;
  const uint64_t start = weir::base::ticks();
  const int result = real();
  thread_log.flags_below = before;
  Call call{op, Layer::stdio, 0, 0, 0, start, weir::base::ticks(), kUnknownOffset, 0};
  set_outcome(call, result == EOF);
  record_call(call);
  return result;
}

template <typename Real>
inline int buffering(FILE* f, size_t size, Real real) {
  return on_stream(Op::kSetvbuf, f, real, [=](Call& call, int result) {
    call.size = clip(size);
    set_outcome(call, result != 0);
  });
}

}  // namespace

#define WEIR_FSEEK(symbol, type)                                                             \
  WEIR_HOOK(int, symbol, FILE* f, type offset, int whence) {                                 \
    return seeking(f, offset, whence, [=] { return WEIR_REAL(symbol)(f, offset, whence); }); \
  }
WEIR_FSEEK(fseek, long)
WEIR_FSEEK(fseeko, off_t)
WEIR_FSEEK(fseeko64, int64_t)

// What fpos_t holds is glibc's own affair.
WEIR_HOOK(int, fsetpos, FILE* f, const fpos_t* position) {
  return seeking(f, 0, SEEK_CUR, [=] { return WEIR_REAL(fsetpos)(f, position); });
}
WEIR_HOOK(int, fsetpos64, FILE* f, const fpos_t* position) {
  return seeking(f, 0, SEEK_CUR, [=] { return WEIR_REAL(fsetpos64)(f, position); });
}

WEIR_HOOK(long, ftell, FILE* f) {
  return telling(f, [=] { return WEIR_REAL(ftell)(f); });
}
WEIR_HOOK(off_t, ftello, FILE* f) {
  return telling(f, [=] { return WEIR_REAL(ftello)(f); });
}
WEIR_HOOK(int64_t, ftello64, FILE* f) {
  return telling(f, [=] { return WEIR_REAL(ftello64)(f); });
}
WEIR_HOOK(int, fgetpos, FILE* f, fpos_t* position) {
  return on_stream(Op::kFtell, f, [=] { return WEIR_REAL(fgetpos)(f, position); }, negative_fails);
}
WEIR_HOOK(int, fgetpos64, FILE* f, fpos_t* position) {
  return on_stream(
      Op::kFtell, f, [=] { return WEIR_REAL(fgetpos64)(f, position); }, negative_fails);
}

// rewind has no result: that it failed cannot be distinguished from its return.
WEIR_HOOK(void, rewind, FILE* f) {
  const auto real = [=] {
    WEIR_REAL(rewind)(f);
    return 0;
  };
  const Unread before(f);
  on_stream(Op::kRewind, f, real, negative_fails);
  if (descriptor_of(f) >= 0) count_passed_over(before.passed_over(f));
}

#define WEIR_FFLUSH(symbol)                                                      \
  WEIR_HOOK(int, symbol, FILE* f) {                                              \
    const auto real = [=] { return WEIR_REAL(symbol)(f); };                      \
    return f != nullptr ? flushing(f, real) : on_all_streams(Op::kFflush, real); \
  }
WEIR_FFLUSH(fflush)
WEIR_FFLUSH(fflush_unlocked)

// In glibc it flushes all streams and closes none.
WEIR_HOOK(int, fcloseall) {
  return on_all_streams(Op::kFflush, [] { return WEIR_REAL(fcloseall)(); });
}

WEIR_HOOK(int, setvbuf, FILE* f, char* buffer, int mode, size_t size) {
  return buffering(f, size, [=] { return WEIR_REAL(setvbuf)(f, buffer, mode, size); });
}
WEIR_HOOK(void, setbuf, FILE* f, char* buffer) {
  const auto real = [=] {
    WEIR_REAL(setbuf)(f, buffer);
    return 0;
  };
  buffering(f, buffer != nullptr ? BUFSIZ : 0, real);
}
WEIR_HOOK(void, setbuffer, FILE* f, char* buffer, size_t size) {
  const auto real = [=] {
    WEIR_REAL(setbuffer)(f, buffer, size);
    return 0;
  };
  buffering(f, buffer != nullptr ? size : 0, real);
}
WEIR_HOOK(void, setlinebuf, FILE* f) {
  const auto real = [=] {
    WEIR_REAL(setlinebuf)(f);
    return 0;
  };
  buffering(f, 0, real);
}
