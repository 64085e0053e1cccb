// SPDX-License-Identifier: Apache-2.0
// Descriptors come and go: the families of open, close and dup.
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>

#include "hook/by_name.h"
#include "hook/closing.h"
#include "base/scratch.h"
#include "layers/machinery/stack/cancel.h"
#include "layers/machinery/stack/carried_locks.h"
#include "layers/machinery/stack/in_memory.h"
#include "layers/machinery/stack/park.h"
#include "layers/machinery/stack/posix.h"
#include "layers/machinery/stack/replace.h"
#include "layers/machinery/stack/table.h"

namespace weir::hook {

constexpr size_t kLongestPath = 4096;  // with its zero, as the kernel takes them

uint32_t path_at(int directory, const char* path) {
  trace::Names& names = trace::process().names();
  if (path == nullptr) return file_of(directory);
  if (directory == AT_FDCWD || path[0] == '/') return names.path_id(path);
  if (path[0] == 0) return file_of(directory);
  char link[32];
  base::Writer(link, sizeof link)
      .add("/proc/self/fd/")
      .add_number(static_cast<uint64_t>(directory));
  const base::Scratch room;
  char* const whole = room.data();
  if (whole == nullptr) return 0;
  const long size = base::read_link(link, whole, base::Scratch::kBytes);
  if (base::failed(size) || size == 0) return names.id(base::text(path), wire::NameSource::kGiven);
  const size_t length = static_cast<size_t>(size);
  base::Writer name(whole + length, base::Scratch::kBytes - length);
  name.add(whole[length - 1] == '/' ? "" : "/").add(path);
  if (name.cut()) return 0;
  return names.id({whole, length + name.view().size}, wire::NameSource::kGiven);
}

uint32_t doubtful_path_at(int directory, const char* path) {
  if (path == nullptr) return path_at(directory, path);
  const base::Scratch room;
  return room.data() != nullptr && base::copy_text(room.data(), path, kLongestPath)
             ? path_at(directory, room.data())
             : 0;
}

}  // namespace weir::hook

using namespace weir::hook;
namespace base = weir::base;
namespace stack = weir::stack;

namespace {

// An opening as the trace sees it, around one as the rules see it.
template <typename Real>
int opening_by_rule(Op op, int directory, const char* path, int flags, unsigned mode, Real real) {
  if (stack::active())
    stack::cancellation_point();  // layers that take part in the open itself make it by a system
                                  // call
  const int fd = opening(op, directory, path, flags, [&] {
    return opening_target_too(directory, path, flags, [&](int from, const char* there) {
      return stack::opening(from, there, flags, mode,
                            [&] { return opening_by_name(from, there, flags, real); });
    });
  });
  if (fd >= 0 && recording()) stack::set_name(fd, descriptors[fd < kDescriptors ? fd : 0].file);
  return fd;
}

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

#define WEIR_OPEN(symbol)                                                                     \
  WEIR_HOOK(int, symbol, const char* path, int flags, ...) {                                  \
    WEIR_MODE(flags)                                                                          \
    return opening_by_rule(                                                                   \
        Op::kOpen, AT_FDCWD, path, flags, mode,                                               \
        [&](int, const char* there) { return WEIR_REAL(symbol)(there, flags, mode); });       \
  }
WEIR_OPEN(open)
WEIR_OPEN(open64)

#define WEIR_OPENAT(symbol)                                                                     \
  WEIR_HOOK(int, symbol, int directory, const char* path, int flags, ...) {                     \
    WEIR_MODE(flags)                                                                            \
    return opening_by_rule(Op::kOpenat, directory, path, flags, mode,                           \
                           [&](int from, const char* there) {                                   \
                             return WEIR_REAL(symbol)(from, there, flags, mode);                \
                           });                                                                  \
  }
WEIR_OPENAT(openat)
WEIR_OPENAT(openat64)

// The checked forms of fortified programs.
#define WEIR_OPEN_2(symbol)                                                             \
  WEIR_HOOK(int, symbol, const char* path, int flags) {                                 \
    return opening_by_rule(                                                             \
        Op::kOpen, AT_FDCWD, path, flags, 0,                                            \
        [&](int, const char* there) { return WEIR_REAL(symbol)(there, flags); });       \
  }
WEIR_OPEN_2(__open_2)
WEIR_OPEN_2(__open64_2)

#define WEIR_OPENAT_2(symbol)                                                             \
  WEIR_HOOK(int, symbol, int directory, const char* path, int flags) {                    \
    return opening_by_rule(                                                               \
        Op::kOpenat, directory, path, flags, 0,                                           \
        [&](int from, const char* there) { return WEIR_REAL(symbol)(from, there, flags); }); \
  }
WEIR_OPENAT_2(__openat_2)
WEIR_OPENAT_2(__openat64_2)

#define WEIR_CREAT(symbol)                                                                   \
  WEIR_HOOK(int, symbol, const char* path, mode_t mode) {                                    \
    return opening_by_rule(                                                                  \
        Op::kCreat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode,                      \
        [&](int, const char* there) { return WEIR_REAL(symbol)(there, mode); });             \
  }
WEIR_CREAT(creat)
WEIR_CREAT(creat64)

// The name is written into the template by the call, and read after it: no layer takes part in the
// open itself.
template <typename Real>
int opening_made_name(const char* name, Real real) {
  const int fd = opening(Op::kMkstemp, AT_FDCWD, name, O_RDWR,
                         [&] { return stack::opening_as_made(name, O_RDWR, real); });
  if (fd >= 0 && stack::any_layer_has_names()) stack::name_made(AT_FDCWD, name);
  if (fd >= 0 && recording()) stack::set_name(fd, descriptors[fd < kDescriptors ? fd : 0].file);
  return fd;
}

#define WEIR_MKSTEMP(symbol, parameters, ...)                                            \
  WEIR_HOOK(int, symbol, parameters) {                                                   \
    return opening_made_name(name, [&] { return WEIR_REAL(symbol)(__VA_ARGS__); });      \
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
  stack::cancellation_point();
  return closing(fd, [&] { return WEIR_REAL(close)(fd); });
}

WEIR_HOOK(int, close_range, unsigned first, unsigned last, int flags) {
  const bool closes = (static_cast<unsigned>(flags) & kOnlyCloseOnExec) == 0;
  return closing_range(first, last, closes, [&](unsigned from, unsigned to) {
    return WEIR_REAL(close_range)(from, to, flags);
  });
}

WEIR_HOOK(void, closefrom, int first) {
  // Where weir's own are in the way the pieces are closed by the system call.
  closing_range(first < 0 ? 0 : static_cast<unsigned>(first), ~0u, true,
                [&](unsigned from, unsigned to) {
                  if (to == ~0u && from < INT_MAX) WEIR_REAL(closefrom)(static_cast<int>(from));
                  else base::system_call(SYS_close_range, from, to, 0);
                  return 0;
                });
}

WEIR_HOOK(int, dup, int fd) {
  return copying(Op::kDup, fd, -1, [&] { return WEIR_REAL(dup)(fd); });
}
WEIR_HOOK(int, dup2, int fd, int to) {
  return copying(Op::kDup2, fd, to, [&] { return WEIR_REAL(dup2)(fd, to); });
}
WEIR_HOOK(int, dup3, int fd, int to, int flags) {
  return copying(Op::kDup3, fd, to, [&] { return WEIR_REAL(dup3)(fd, to, flags); });
}

namespace {

template <typename Real>
int setting_flags(int fd, int flags, Real real) {
  if ((flags & O_DIRECT) != 0) stack::leave(fd, stack::Reason::kDirect);
  if (stack::File* const f = stack::file_at(fd); stack::is_in_memory(f)) f->lent = true;
  if (stack::File* const f = stack::file_at(fd); f != nullptr) stack::own_description(f);
  // Bytes of several ranks lie in layers that they share: the kernel cannot append those.
  if (const stack::File* const f = stack::file_at(fd);
      f != nullptr && f->shares && ((flags ^ f->flags) & O_APPEND) != 0) {
    stack::leave(fd, stack::Reason::kUnsupported);
  }
  // Where a layer decides what lies where on disk the kernel must not append by itself.
  const stack::File* const f = stack::file_at(fd);
  const int given = f != nullptr && f->transforms ? flags & ~O_APPEND : flags;
  // What layers hold was not accepted to be appended, or was: it is written before the kernel
  // thinks otherwise.
  const bool turns = f != nullptr && ((flags ^ f->flags) & O_APPEND) != 0;
  const auto set = [&] { return real(given); };
  const int result = on_descriptor(Op::kFcntl, fd, kUnknownOffset, 0,
                                   [&] { return turns ? stack::through_kernel(fd, set) : set(); });
  if (result != 0) return result;
  appends(fd, (flags & O_APPEND) != 0);
  stack::flags_set(fd, flags);
  return 0;
}

template <typename Real>
int getting_flags(int fd, Real real) {
  const int result = on_descriptor(Op::kFcntl, fd, kUnknownOffset, 0, real);
  const stack::File* const f = stack::file_at(fd);
  constexpr int kOfOpening = O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_CLOEXEC;
  if (result >= 0 && stack::is_in_memory(f))
    return (result & O_APPEND) | 0100000 /* O_LARGEFILE */ |
           (f->flags & ~kOfOpening & ~O_APPEND);
  return result >= 0 && f != nullptr && f->transforms
             ? (result & ~O_ACCMODE) | (f->flags & (O_APPEND | O_ACCMODE))
             : result;
}

bool is_lock(int command) {
  switch (command) {
    case F_SETLK: case F_SETLKW: case F_OFD_SETLK: case F_OFD_SETLKW: return true;
  }
  return false;
}

// A lock is a promise to see what others wrote, and giving it up one that they see what was written
// here.
bool tests_lock(int command) { return command == F_GETLK || command == F_OFD_GETLK; }

template <typename With>
int locking(int fd, int command, long argument, With with) {
  if (is_lock(command) && stack::any_parked()) stack::drop_same_file(fd);
  if ((command == F_SETLK || command == F_SETLKW) && stack::active()) stack::note_process_lock(fd);
  stack::File* const f = stack::file_at(fd);
  if (WEIR_LIKELY(f == nullptr)) return with(argument);
  if (f->in_memory && command != F_GETFD && command != F_SETFD) f->lent = true;
  f->locked |= f->in_memory && is_lock(command);
  if (command == F_SETFD && weir::trace::thread_log.in_vfork_child)
    stack::leave(f, stack::Reason::kForked);  // exec may hand it on
  if (!is_lock(command) && !tests_lock(command)) return with(argument);
  return stack::locking(f, fd, reinterpret_cast<struct flock*>(argument), tests_lock(command),
                        [&](struct flock* range) { return with(reinterpret_cast<long>(range)); });
}

}  // namespace

// The one argument of fcntl may be a pointer or an int; a long carries both in the calling
// conventions weir knows.
#define WEIR_FCNTL(symbol)                                                               \
  WEIR_HOOK(int, symbol, int fd, int command, ...) {                                     \
    va_list arguments;                                                                   \
    va_start(arguments, command);                                                        \
    const long argument = va_arg(arguments, long);                                       \
    va_end(arguments);                                                                   \
    const auto with = [&](long given) { return WEIR_REAL(symbol)(fd, command, given); }; \
    const auto real = [&] { return with(argument); };                                    \
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)                                \
      return copying(Op::kFcntl, fd, -1, real);                                          \
    if (command == F_SETFL) return setting_flags(fd, static_cast<int>(argument), with);  \
    if (command == F_GETFL) return getting_flags(fd, real);                              \
    return on_descriptor(Op::kFcntl, fd, kUnknownOffset, 0,                              \
                         [&] { return locking(fd, command, argument, with); });          \
  }
WEIR_FCNTL(fcntl)
WEIR_FCNTL(fcntl64)
