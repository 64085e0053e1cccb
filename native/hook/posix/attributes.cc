// SPDX-License-Identifier: Apache-2.0
// Calls that change what stat and access say of a file: mode, owner, times, extended attributes.
// What layers hold of the file goes down first (a later write would change the times again, and
// take setuid bits away), and nothing that was said of a name before is believed afterwards.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <utime.h>

#include "hook/observe.h"
#include "layers/machinery/stack/apart.h"
#include "layers/machinery/stack/park.h"
#include "layers/machinery/stack/posix.h"
#include "layers/machinery/stack/table.h"

using namespace weir::hook;
namespace stack = weir::stack;

namespace {

// A file that is kept open after its close may be one that the program cannot open any more.
using stack::Change;

// The times of utime, utimes and utimensat in the kernel's form; null: now.
timespec moment(const timespec* to) {
  timespec now{};
  if (to == nullptr || to[1].tv_nsec == UTIME_NOW) clock_gettime(CLOCK_REALTIME, &now);
  return to == nullptr || to[1].tv_nsec == UTIME_NOW ? now : to[1];
}
timespec moment(const timeval* to) {
  if (to == nullptr) return moment(static_cast<const timespec*>(nullptr));
  return {to[1].tv_sec, to[1].tv_usec * 1000};
}
timespec moment(const utimbuf* to) {
  if (to == nullptr) return moment(static_cast<const timespec*>(nullptr));
  return {to->modtime, 0};
}
template <typename Times>
Change of_times(const Times* to) {
  return {Change::kTimes, 0, 0, 0, moment(to)};
}
Change of_mode(mode_t mode) { return {Change::kMode, mode, 0, 0, {}}; }
Change of_owner(uid_t user, gid_t group) { return {Change::kOwner, 0, user, group, {}}; }

// True: the file lies apart from its name, and the layer has changed what it says of it.
template <typename Make>
bool changed_apart(int directory, const char* path, int* answer, Make make) {
  return stack::has_names_apart() && path != nullptr && path[0] != 0 &&
         stack::change_apart(directory, path, make(), answer);
}

template <typename Real>
int changing(int directory, const char* path, int flags, Real real) {
  if (!stack::active()) return real();
  stack::name_changes(directory, path);
  stack::settle(directory, path, (flags & AT_SYMLINK_NOFOLLOW) == 0);
  if (WEIR_LIKELY((flags & AT_EMPTY_PATH) == 0)) return stack::names_then_changed(real());
  return stack::names_then_changed(stack::through_kernel(directory, real));
}

template <typename Real>
int changing_of(int fd, Real real) {
  if (!stack::active()) return real();
  stack::drop_same_file(fd);
  return stack::names_then_changed(stack::through_kernel(fd, real));
}

}  // namespace

// made: the change, as layers get it.
#define WEIR_CHANGE_AS(symbol, op, directory, flags, made, parameters, ...)                    \
  WEIR_HOOK(int, symbol, parameters) {                                                         \
    return on_path(Op::op, directory, path, 0, [&] {                                           \
      int answer = 0;                                                                          \
      if (changed_apart(directory, path, &answer, [&] { return made; })) return answer;        \
      return changing(directory, path, flags, [&] { return WEIR_REAL(symbol)(__VA_ARGS__); }); \
    });                                                                                        \
  }
#define WEIR_CHANGE_AT(symbol, op, directory, flags, parameters, ...)                          \
  WEIR_HOOK(int, symbol, parameters) {                                                         \
    return on_path(Op::op, directory, path, 0, [&] {                                           \
      if (stack::has_names_apart()) stack::surrender_apart(directory, path);                   \
      return changing(directory, path, flags, [&] { return WEIR_REAL(symbol)(__VA_ARGS__); }); \
    });                                                                                        \
  }
#define WEIR_CHANGE_OF_AS(symbol, op, made, parameters, ...)                                \
  WEIR_HOOK(int, symbol, parameters) {                                                      \
    return on_descriptor(Op::op, fd, kUnknownOffset, 0, [&] {                               \
      int answer = 0;                                                                       \
      if (stack::has_names_apart() && stack::change_apart_of(fd, made, &answer)) return answer; \
      return changing_of(fd, [&] { return WEIR_REAL(symbol)(__VA_ARGS__); });               \
    });                                                                                     \
  }
#define WEIR_CHANGE_OF(symbol, op, parameters, ...)                           \
  WEIR_HOOK(int, symbol, parameters) {                                        \
    return on_descriptor(Op::op, fd, kUnknownOffset, 0, [&] {                 \
      return changing_of(fd, [&] { return WEIR_REAL(symbol)(__VA_ARGS__); }); \
    });                                                                       \
  }

WEIR_CHANGE_AS(chmod, kChmod, AT_FDCWD, 0, of_mode(mode), WEIR_LIST(const char* path, mode_t mode),
               path, mode)
WEIR_CHANGE_AS(lchmod, kChmod, AT_FDCWD, AT_SYMLINK_NOFOLLOW, of_mode(mode),
               WEIR_LIST(const char* path, mode_t mode), path, mode)
WEIR_CHANGE_OF_AS(fchmod, kChmod, of_mode(mode), WEIR_LIST(int fd, mode_t mode), fd, mode)
WEIR_CHANGE_AS(fchmodat, kChmod, directory, flags, of_mode(mode), WEIR_LIST(int directory,
               const char* path, mode_t mode, int flags), directory, path, mode, flags)

WEIR_CHANGE_AS(chown, kChown, AT_FDCWD, 0, of_owner(user, group), WEIR_LIST(const char* path,
               uid_t user, gid_t group), path, user, group)
WEIR_CHANGE_AS(lchown, kChown, AT_FDCWD, AT_SYMLINK_NOFOLLOW, of_owner(user, group),
               WEIR_LIST(const char* path, uid_t user, gid_t group), path, user, group)
WEIR_CHANGE_OF_AS(fchown, kChown, of_owner(user, group), WEIR_LIST(int fd, uid_t user,
                  gid_t group), fd, user, group)
WEIR_CHANGE_AS(fchownat, kChown, directory, flags, of_owner(user, group), WEIR_LIST(int directory,
               const char* path, uid_t user, gid_t group, int flags), directory, path, user, group,
               flags)

WEIR_CHANGE_AS(utime, kUtime, AT_FDCWD, 0, of_times(to), WEIR_LIST(const char* path,
               const utimbuf* to), path, to)
WEIR_CHANGE_AS(utimes, kUtime, AT_FDCWD, 0, of_times(to), WEIR_LIST(const char* path,
               const timeval* to), path, to)
WEIR_CHANGE_AS(lutimes, kUtime, AT_FDCWD, AT_SYMLINK_NOFOLLOW, of_times(to),
               WEIR_LIST(const char* path, const timeval* to), path, to)
WEIR_CHANGE_AS(futimesat, kUtime, directory, 0, of_times(to), WEIR_LIST(int directory,
               const char* path, const timeval* to), directory, path, to)
WEIR_CHANGE_AS(utimensat, kUtime, directory, flags, of_times(to), WEIR_LIST(int directory,
               const char* path, const timespec* to, int flags), directory, path, to, flags)
WEIR_CHANGE_OF_AS(futimes, kUtime, of_times(to), WEIR_LIST(int fd, const timeval* to), fd, to)
WEIR_CHANGE_OF_AS(futimens, kUtime, of_times(to), WEIR_LIST(int fd, const timespec* to), fd, to)

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
