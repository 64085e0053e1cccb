// SPDX-License-Identifier: Apache-2.0
// Streams come and go: fopen, fdopen, freopen, tmpfile, popen, fclose.
#include <fcntl.h>

#include "hook/stdio/layered_stream.h"
#include "hook/stdio/stream.h"
#include "layers/machinery/stack/posix.h"
#include "layers/machinery/stack/process.h"

namespace weir::hook {

uint32_t meet_stream(int fd) {
  const uint32_t file = file_of(fd);
  Descriptor* d = descriptor(fd);
  if (d != nullptr && !trace::thread_log.in_vfork_child) {
    d->flags |= kShared;
    d->position = kUnknownOffset;
  }
  return file;
}

void opened_stream(int fd, uint32_t file, const char* mode) {
  opened(fd, file, mode[0] == 'a' ? O_APPEND : 0);
}

}  // namespace weir::hook

using namespace weir::hook;
namespace base = weir::base;
namespace stack = weir::stack;
namespace wire = weir::wire;

namespace {

template <typename Real>
FILE* opening_stream(const char* path, const char* mode, Real real) {
  if (WEIR_UNLIKELY(!recording())) return real();
  const uint64_t start = base::ticks();
  FILE* const f = real();
  Call call{Op::kFopen, Layer::stdio, 0, 0, 0, start, base::ticks(), kUnknownOffset, 0};
  set_outcome(call, f == nullptr);
  call.file = name_after(call, AT_FDCWD, path);
  if (f != nullptr) opened_stream(f->_fileno, call.file, mode);
  if (f != nullptr && mode[0] != 'a') call.offset = 0;
  record_call(call);
  return f;
}

// A stream of which only the kernel knows the name.
template <typename Real>
FILE* opening_nameless(Op op, Real real) {
  if (WEIR_UNLIKELY(!recording())) return real();
  const uint64_t start = base::ticks();
  FILE* const f = real();
  Call call{op, Layer::stdio, 0, 0, 0, start, base::ticks(), kUnknownOffset, 0};
  set_outcome(call, f == nullptr);
  if (f != nullptr) {
    closed(f->_fileno);  // what an unseen close may have left
    call.file = file_of_stream(f->_fileno);
  }
  record_call(call);
  return f;
}

// The old descriptor's entry is dropped first, as in close; the new file has the same number more
// often than not.
template <typename Real>
FILE* reopening(const char* path, const char* mode, FILE* old, Real real) {
  if (WEIR_UNLIKELY(!recording())) return real();
  const int old_fd = descriptor_of(old);
  const uint32_t old_file = old_fd >= 0 ? file_of_stream(old_fd) : 0;
  closed(old_fd);
  if (old_fd >= 0) count_passed_over(Unread(old).bytes());
  const uint64_t start = base::ticks();
  FILE* const f = real();
  Call call{Op::kFreopen, Layer::stdio, 0, 0, old_file, start, base::ticks(), kUnknownOffset, 0};
  set_outcome(call, f == nullptr);
  if (path != nullptr) call.file = name_after(call, AT_FDCWD, path);
  if (f != nullptr) opened_stream(f->_fileno, call.file, mode);
  if (f != nullptr && path != nullptr && mode[0] != 'a') call.offset = 0;
  record_call(call);
  return f;
}

template <typename Real>
int closing_stream(FILE* f, Real real) {
  if (WEIR_UNLIKELY(!recording()) || f == nullptr) return real();
  const int fd = descriptor_of(f);
  if (fd < 0) return real();
  Call call{Op::kFclose, Layer::stdio, 0, 0, file_of_stream(fd), 0, 0, kUnknownOffset, 0};
  closed(fd);
  const Unread left(f);
  call.start = base::ticks();
  const int result = real();
  call.end = base::ticks();
  set_outcome(call, result == -1);
  record_call(call);
  count_passed_over(left.bytes());
  return result;
}

// fdopen: glibc has asked the kernel for the descriptor's mode; where it has set O_APPEND it has
// also gone to the end.
FILE* taking_over(int fd, const char* mode, FILE* (*real)(int, const char*)) {
  const stack::File* const file = stack::active() ? stack::known_at(fd) : nullptr;
  if (file == nullptr) return real(fd, mode);
  const int wanted = flags_of_mode(mode);
  if (wanted >= 0 && (wanted & O_ACCMODE) != O_WRONLY && stack::writes_alone(file)) {
    errno = EINVAL;
    return nullptr;
  }
  const long before = base::system_call(SYS_fcntl, fd, F_GETFL);
  // A layer that stores another form than the program's writes where it belongs, which is not the
  // end: the kernel does without the flag.
  const bool transforms = file->transforms;
  const long shown = transforms ? before | (file->flags & O_APPEND) : before;
  long flags = shown;
  FILE* const f = stack::through_kernel(fd, [&] {  // which hands down first, to where it belongs
    if (shown != before) base::system_call(SYS_fcntl, fd, F_SETFL, shown);
    FILE* const made = real(fd, mode);
    if (made != nullptr) flags = base::system_call(SYS_fcntl, fd, F_GETFL);
    if (transforms && flags != before) base::system_call(SYS_fcntl, fd, F_SETFL, before);
    return made;
  });
  if (flags != shown) stack::flags_set(fd, static_cast<int>(flags));
  return f != nullptr ? with_layers(f, flags != shown) : nullptr;
}

}  // namespace

#define WEIR_FOPEN(symbol)                                                                    \
  WEIR_HOOK(FILE*, symbol, const char* path, const char* mode) {                              \
    return opening_stream(path, mode, [&] {                                                   \
      return opening_layers(path, mode, [&](int, const char* there) {                         \
        return WEIR_REAL(symbol)(there, mode);                                                \
      });                                                                                     \
    });                                                                                       \
  }
WEIR_FOPEN(fopen)
WEIR_FOPEN(fopen64)

#define WEIR_FREOPEN(symbol)                                                                  \
  WEIR_HOOK(FILE*, symbol, const char* path, const char* mode, FILE* old) {                   \
    return reopening(path, mode, old, [&] {                                                   \
      FILE* (*const real)(const char*, const char*, FILE*) = WEIR_REAL(symbol);               \
      return stack::active() ? reopen_layered(path, mode, old, real) : real(path, mode, old); \
    });                                                                                       \
  }
WEIR_FREOPEN(freopen)
WEIR_FREOPEN(freopen64)

WEIR_HOOK(FILE*, tmpfile) {
  return opening_nameless(Op::kTmpfile, [] { return WEIR_REAL(tmpfile)(); });
}
WEIR_HOOK(FILE*, tmpfile64) {
  return opening_nameless(Op::kTmpfile, [] { return WEIR_REAL(tmpfile64)(); });
}

// A pipe to a child, which is recorded by itself.
WEIR_HOOK(FILE*, popen, const char* command, const char* mode) {
  weir::stack::before_spawn(false);
  return opening_nameless(Op::kFopen, [&] { return WEIR_REAL(popen)(command, mode); });
}

// Opens nothing: the descriptor is there already, and keeps its entry.
WEIR_HOOK(FILE*, fdopen, int fd, const char* mode) {
  if (WEIR_UNLIKELY(!recording())) return taking_over(fd, mode, WEIR_REAL(fdopen));
  const uint64_t start = base::ticks();
  FILE* const f = taking_over(fd, mode, WEIR_REAL(fdopen));
  Call call{Op::kFdopen, Layer::stdio, 0, 0, 0, start, base::ticks(), kUnknownOffset, 0};
  set_outcome(call, f == nullptr);
  call.file = f != nullptr ? file_of_stream(fd) : file_of(fd);
  record_call(call);
  return f;
}

WEIR_HOOK(int, fclose, FILE* f) {
  return closing_stream(f, [&] {
    return stack::active() && f != nullptr ? close_stream(f, WEIR_REAL(fclose))
                                           : WEIR_REAL(fclose)(f);
  });
}
WEIR_HOOK(int, pclose, FILE* f) {
  return closing_stream(f, [&] { return WEIR_REAL(pclose)(f); });
}
