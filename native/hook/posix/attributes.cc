// SPDX-License-Identifier: Apache-2.0
// Calls that change what stat and access say of a file: mode, owner, times, extended attributes.
// What layers hold of the file goes down first (a later write would change the times again, and
// take setuid bits away), and nothing that was said of a name before is believed afterwards.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <utime.h>

#include "hook/observe.h"
#include "layers/machinery/stack/elsewhere.h"
#include "layers/machinery/stack/park.h"
#include "layers/machinery/stack/posix.h"
#include "layers/machinery/stack/table.h"

using namespace weir::hook;
namespace stack = weir::stack;

namespace {

// A file that is kept open after its close may be one that the program cannot open any more.
template <typename Real>
int changing(int directory, const char* path, int flags, Real real) {
  if (!stack::active()) return real(directory, path);
  const bool follow = (flags & AT_SYMLINK_NOFOLLOW) == 0;
  stack::name_changes(directory, path);
  stack::settle(directory, path, follow);
  if (WEIR_LIKELY((flags & AT_EMPTY_PATH) == 0))
    return stack::names_then_changed(stack::changing_by_name(directory, path, follow, real));
  return stack::names_then_changed(
      stack::through_kernel(directory, [&] { return real(directory, path); }));
}

template <typename Real>
int changing_of(int fd, Real real) {
  if (!stack::active()) return real();
  stack::drop_same_file(fd);
  return stack::names_then_changed(stack::through_kernel(fd, real));
}

}  // namespace

#define WEIR_CHANGE_AT(symbol, op, directory, flags, parameters, ...)                          \
  WEIR_HOOK(int, symbol, parameters) {                                                         \
    return on_path(Op::op, directory, path, 0, [&] {                                           \
      return changing(directory, path, flags,                                                  \
                      [&](int, const char* path) { return WEIR_REAL(symbol)(__VA_ARGS__); });  \
    });                                                                                        \
  }
#define WEIR_CHANGE_OF(symbol, op, parameters, ...)                           \
  WEIR_HOOK(int, symbol, parameters) {                                        \
    return on_descriptor(Op::op, fd, kUnknownOffset, 0, [&] {                 \
      return changing_of(fd, [&] { return WEIR_REAL(symbol)(__VA_ARGS__); }); \
    });                                                                       \
  }

WEIR_CHANGE_AT(chmod, kChmod, AT_FDCWD, 0, WEIR_LIST(const char* path, mode_t mode), path, mode)
WEIR_CHANGE_AT(lchmod, kChmod, AT_FDCWD, AT_SYMLINK_NOFOLLOW,
               WEIR_LIST(const char* path, mode_t mode), path, mode)
WEIR_CHANGE_OF(fchmod, kChmod, WEIR_LIST(int fd, mode_t mode), fd, mode)
WEIR_CHANGE_AT(fchmodat, kChmod, directory, flags,
               WEIR_LIST(int directory, const char* path, mode_t mode, int flags), directory, path,
               mode, flags)

WEIR_CHANGE_AT(chown, kChown, AT_FDCWD, 0, WEIR_LIST(const char* path, uid_t user, gid_t group),
               path, user, group)
WEIR_CHANGE_AT(lchown, kChown, AT_FDCWD, AT_SYMLINK_NOFOLLOW,
               WEIR_LIST(const char* path, uid_t user, gid_t group), path, user, group)
WEIR_CHANGE_OF(fchown, kChown, WEIR_LIST(int fd, uid_t user, gid_t group), fd, user, group)
WEIR_CHANGE_AT(fchownat, kChown, directory, flags,
               WEIR_LIST(int directory, const char* path, uid_t user, gid_t group, int flags),
               directory, path, user, group, flags)

WEIR_CHANGE_AT(utime, kUtime, AT_FDCWD, 0, WEIR_LIST(const char* path, const utimbuf* to), path, to)
WEIR_CHANGE_AT(utimes, kUtime, AT_FDCWD, 0, WEIR_LIST(const char* path, const timeval* to), path,
               to)
WEIR_CHANGE_AT(lutimes, kUtime, AT_FDCWD, AT_SYMLINK_NOFOLLOW,
               WEIR_LIST(const char* path, const timeval* to), path, to)
WEIR_CHANGE_AT(futimesat, kUtime, directory, 0,
               WEIR_LIST(int directory, const char* path, const timeval* to), directory, path, to)
WEIR_CHANGE_AT(utimensat, kUtime, directory, flags,
               WEIR_LIST(int directory, const char* path, const timespec* to, int flags), directory,
               path, to, flags)
WEIR_CHANGE_OF(futimes, kUtime, WEIR_LIST(int fd, const timeval* to), fd, to)
WEIR_CHANGE_OF(futimens, kUtime, WEIR_LIST(int fd, const timespec* to), fd, to)

#define WEIR_VALUE const char *name, const void *value, size_t n, int flags
WEIR_CHANGE_AT(setxattr, kSetxattr, AT_FDCWD, 0, WEIR_LIST(const char* path, WEIR_VALUE), path,
               name, value, n, flags)
WEIR_CHANGE_AT(lsetxattr, kSetxattr, AT_FDCWD, AT_SYMLINK_NOFOLLOW,
               WEIR_LIST(const char* path, WEIR_VALUE), path, name, value, n, flags)
WEIR_CHANGE_OF(fsetxattr, kSetxattr, WEIR_LIST(int fd, WEIR_VALUE), fd, name, value, n, flags)
WEIR_CHANGE_AT(removexattr, kRemovexattr, AT_FDCWD, 0,
               WEIR_LIST(const char* path, const char* name), path, name)
WEIR_CHANGE_AT(lremovexattr, kRemovexattr, AT_FDCWD, AT_SYMLINK_NOFOLLOW,
               WEIR_LIST(const char* path, const char* name), path, name)
WEIR_CHANGE_OF(fremovexattr, kRemovexattr, WEIR_LIST(int fd, const char* name), fd, name)
