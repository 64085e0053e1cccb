// SPDX-License-Identifier: Apache-2.0
// Descriptors come and go: open, close, dup and their kin.
#include <fcntl.h>
#include <stdarg.h>

#include "hook/closing.h"
#include "os/scratch.h"

namespace weir::hook {

constexpr size_t kLongestPath = 4096;  // with its zero, as the kernel takes them

uint32_t path_at(int directory, const char* path) {
  record::Names& names = record::process().names();
  if (path == nullptr) return file_of(directory);
  if (directory == AT_FDCWD || path[0] == '/') return names.path_id(path);
  if (path[0] == 0) return file_of(directory);
  char link[32];
  base::Writer(link, sizeof link).add("/proc/self/fd/").add_number(static_cast<uint64_t>(directory));
  const os::Scratch room;
  char* const whole = room.data();
  if (whole == nullptr) return 0;
  const long size = os::read_link(link, whole, os::Scratch::kBytes);
  if (os::failed(size) || size == 0) return names.id(base::text(path), wire::NameSource::kGiven);
  const size_t folder = static_cast<size_t>(size);
  base::Writer name(whole + folder, os::Scratch::kBytes - folder);
  name.add(whole[folder - 1] == '/' ? "" : "/").add(path);
  if (name.cut()) return 0;
  return names.id({whole, folder + name.view().size}, wire::NameSource::kGiven);
}

uint32_t doubtful_path_at(int directory, const char* path) {
  if (path == nullptr) return path_at(directory, path);
  const os::Scratch room;
  return room.data() != nullptr && os::copy_text(room.data(), path, kLongestPath) ? path_at(directory, room.data()) : 0;
}

}  // namespace weir::hook

using namespace weir::hook;
namespace os = weir::os;

namespace {

bool needs_mode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

}  // namespace

#define WEIR_MODE(last)                            \
  mode_t mode = 0;                                 \
  if (needs_mode(last)) {                          \
    va_list arguments;                             \
    va_start(arguments, last);                     \
    mode = va_arg(arguments, mode_t);              \
    va_end(arguments);                             \
  }

#define WEIR_OPEN(symbol)                                                                                        \
  WEIR_HOOK(int, symbol, const char* path, int flags, ...) {                                                     \
    WEIR_MODE(flags)                                                                                             \
    return opening(Op::kOpen, AT_FDCWD, path, flags, [&] { return WEIR_REAL(symbol)(path, flags, mode); });     \
  }
WEIR_OPEN(open)
WEIR_OPEN(open64)

#define WEIR_OPENAT(symbol)                                                                                                \
  WEIR_HOOK(int, symbol, int directory, const char* path, int flags, ...) {                                                \
    WEIR_MODE(flags)                                                                                                       \
    return opening(Op::kOpenat, directory, path, flags, [&] { return WEIR_REAL(symbol)(directory, path, flags, mode); }); \
  }
WEIR_OPENAT(openat)
WEIR_OPENAT(openat64)

// The checked forms of fortified programs.
#define WEIR_OPEN_2(symbol)                                                                                 \
  WEIR_HOOK(int, symbol, const char* path, int flags) {                                                     \
    return opening(Op::kOpen, AT_FDCWD, path, flags, [&] { return WEIR_REAL(symbol)(path, flags); });      \
  }
WEIR_OPEN_2(__open_2)
WEIR_OPEN_2(__open64_2)

#define WEIR_OPENAT_2(symbol)                                                                                        \
  WEIR_HOOK(int, symbol, int directory, const char* path, int flags) {                                               \
    return opening(Op::kOpenat, directory, path, flags, [&] { return WEIR_REAL(symbol)(directory, path, flags); }); \
  }
WEIR_OPENAT_2(__openat_2)
WEIR_OPENAT_2(__openat64_2)

#define WEIR_CREAT(symbol)                                                                                                  \
  WEIR_HOOK(int, symbol, const char* path, mode_t mode) {                                                                   \
    return opening(Op::kCreat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, [&] { return WEIR_REAL(symbol)(path, mode); }); \
  }
WEIR_CREAT(creat)
WEIR_CREAT(creat64)

// The name is written into the template by the call, and read after it.
#define WEIR_MKSTEMP(symbol, parameters, ...)                                                                     \
  WEIR_HOOK(int, symbol, parameters) {                                                                            \
    return opening(Op::kMkstemp, AT_FDCWD, name, O_RDWR, [&] { return WEIR_REAL(symbol)(__VA_ARGS__); });        \
  }
WEIR_MKSTEMP(mkstemp, WEIR_LIST(char* name), name)
WEIR_MKSTEMP(mkstemp64, WEIR_LIST(char* name), name)
WEIR_MKSTEMP(mkostemp, WEIR_LIST(char* name, int flags), name, flags)
WEIR_MKSTEMP(mkostemp64, WEIR_LIST(char* name, int flags), name, flags)
WEIR_MKSTEMP(mkstemps, WEIR_LIST(char* name, int suffix), name, suffix)
WEIR_MKSTEMP(mkstemps64, WEIR_LIST(char* name, int suffix), name, suffix)
WEIR_MKSTEMP(mkostemps, WEIR_LIST(char* name, int suffix, int flags), name, suffix, flags)
WEIR_MKSTEMP(mkostemps64, WEIR_LIST(char* name, int suffix, int flags), name, suffix, flags)

WEIR_HOOK(int, close, int fd) {
  return closing(fd, [&] { return WEIR_REAL(close)(fd); });
}

WEIR_HOOK(int, close_range, unsigned first, unsigned last, int flags) {
  const bool closes = (static_cast<unsigned>(flags) & kOnlyCloseOnExec) == 0;
  return closing_range(first, last, closes, [&] { return WEIR_REAL(close_range)(first, last, flags); });
}

WEIR_HOOK(void, closefrom, int first) {
  closing_range(first < 0 ? 0 : static_cast<unsigned>(first), ~0u, true, [&] {
    WEIR_REAL(closefrom)(first);
    return 0;
  });
}

WEIR_HOOK(int, dup, int fd) {
  return copying(Op::kDup, fd, [&] { return WEIR_REAL(dup)(fd); });
}
WEIR_HOOK(int, dup2, int fd, int to) {
  return copying(Op::kDup2, fd, [&] { return WEIR_REAL(dup2)(fd, to); });
}
WEIR_HOOK(int, dup3, int fd, int to, int flags) {
  return copying(Op::kDup3, fd, [&] { return WEIR_REAL(dup3)(fd, to, flags); });
}

// The one argument of fcntl may be a pointer or an int; a long carries both in the calling conventions weir knows.
#define WEIR_FCNTL(symbol)                                                                                        \
  WEIR_HOOK(int, symbol, int fd, int command, ...) {                                                              \
    va_list arguments;                                                                                            \
    va_start(arguments, command);                                                                                 \
    const long argument = va_arg(arguments, long);                                                                \
    va_end(arguments);                                                                                            \
    const auto real = [&] { return WEIR_REAL(symbol)(fd, command, argument); };                                   \
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) return copying(Op::kFcntl, fd, real);                   \
    const int result = on_descriptor(Op::kFcntl, fd, kUnknownOffset, 0, real);                                    \
    if (command == F_SETFL && result == 0) appends(fd, (argument & O_APPEND) != 0);                               \
    return result;                                                                                                \
  }
WEIR_FCNTL(fcntl)
WEIR_FCNTL(fcntl64)
