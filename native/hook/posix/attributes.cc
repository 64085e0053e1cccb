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

#include "hook/by_name.h"
#include "hook/observe.h"
#include "layers/machinery/stack/in_memory.h"
#include "layers/machinery/stack/park.h"
#include "layers/machinery/stack/posix.h"
#include "layers/machinery/stack/table.h"

using namespace weir::hook;
namespace stack = weir::stack;

namespace {

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

// What a layer that answers does: the change, made when it is asked.
template <typename Make>
auto changed_by_layer(Make make) {
  return [make](const stack::NamesOfLayer& layer, const stack::GivenPath& name, char*) {
    return layer.change != nullptr ? layer.change(name, make()) : stack::kPass;
  };
}

// A file that is kept open after its close may be one that the program cannot open any more.
template <typename Answer, typename Real>
int changing(int directory, const char* path, int flags, Answer answer, Real real) {
  if (!stack::active()) return real(directory, path);
  const bool follow = (flags & AT_SYMLINK_NOFOLLOW) == 0;
  stack::name_changes(directory, path);
  stack::settle(directory, path, follow);
  if (WEIR_UNLIKELY((flags & AT_EMPTY_PATH) != 0))
    return stack::names_then_changed(
        stack::through_kernel(directory, [&] { return real(directory, path); }));
  return stack::names_then_changed(changing_by_name(directory, path, follow, answer, real));
}

template <typename Real>
int changing_of(int fd, Real real) {
  if (!stack::active()) return real();
  stack::drop_same_file(fd);
  return stack::names_then_changed(stack::through_kernel(fd, real));
}

// Extended attributes, which no layer has: a file in memory becomes a real one for them.
template <typename Real>
int attributes_of(int fd, Real real) {
  if (stack::File* const f = stack::file_at(fd); stack::is_in_memory(f))
    stack::make_real(f, stack::Reason::kUnsupported, true);
  return changing_of(fd, real);
}

template <typename Make, typename Real>
int changing_of(int fd, Make make, Real real) {
  int result = 0;
  if (WEIR_UNLIKELY(stack::any_layer_has_names()) &&
      stack::is_in_memory(stack::file_at(fd)) && stack::change_in_memory(fd, make(), &result))
    return result;
  return changing_of(fd, real);
}

}  // namespace

// answer: what a layer does that answers for the file.
#define WEIR_CHANGE_BY(symbol, op, directory, flags, answer, parameters, ...)        \
  WEIR_HOOK(int, symbol, parameters) {                                               \
    return on_path(Op::op, directory, path, 0, [&] {                                 \
      return changing(directory, path, flags, answer,                                \
                      [&]([[maybe_unused]] int from, const char* path) {             \
                        return WEIR_REAL(symbol)(__VA_ARGS__);                       \
                      });                                                            \
    });                                                                              \
  }
// made: the change, as layers get it.
#define WEIR_CHANGE_AT(symbol, op, directory, flags, made, parameters, ...)            \
  WEIR_CHANGE_BY(symbol, op, directory, flags, changed_by_layer([&] { return made; }), \
                 WEIR_LIST(parameters), __VA_ARGS__)
#define WEIR_CHANGE_OF(symbol, op, made, parameters, ...)              \
  WEIR_HOOK(int, symbol, parameters) {                                 \
    return on_descriptor(Op::op, fd, kUnknownOffset, 0, [&] {          \
      const auto real = [&] { return WEIR_REAL(symbol)(__VA_ARGS__); }; \
      return changing_of(fd, [&] { return made; }, real);              \
    });                                                                \
  }
#define WEIR_ATTRIBUTE_OF(symbol, op, parameters, ...)                        \
  WEIR_HOOK(int, symbol, parameters) {                                        \
    return on_descriptor(Op::op, fd, kUnknownOffset, 0, [&] {                 \
      return attributes_of(fd, [&] { return WEIR_REAL(symbol)(__VA_ARGS__); }); \
    });                                                                       \
  }

WEIR_CHANGE_AT(chmod, kChmod, AT_FDCWD, 0, of_mode(mode), WEIR_LIST(const char* path, mode_t mode),
               path, mode)
WEIR_CHANGE_AT(lchmod, kChmod, AT_FDCWD, AT_SYMLINK_NOFOLLOW, of_mode(mode),
               WEIR_LIST(const char* path, mode_t mode), path, mode)
WEIR_CHANGE_OF(fchmod, kChmod, of_mode(mode), WEIR_LIST(int fd, mode_t mode), fd, mode)
WEIR_CHANGE_AT(fchmodat, kChmod, directory, flags, of_mode(mode), WEIR_LIST(int directory,
               const char* path, mode_t mode, int flags), from, path, mode, flags)

WEIR_CHANGE_AT(chown, kChown, AT_FDCWD, 0, of_owner(user, group), WEIR_LIST(const char* path,
               uid_t user, gid_t group), path, user, group)
WEIR_CHANGE_AT(lchown, kChown, AT_FDCWD, AT_SYMLINK_NOFOLLOW, of_owner(user, group),
               WEIR_LIST(const char* path, uid_t user, gid_t group), path, user, group)
WEIR_CHANGE_OF(fchown, kChown, of_owner(user, group), WEIR_LIST(int fd, uid_t user,
                  gid_t group), fd, user, group)
WEIR_CHANGE_AT(fchownat, kChown, directory, flags, of_owner(user, group), WEIR_LIST(int directory,
               const char* path, uid_t user, gid_t group, int flags), from, path, user, group,
               flags)

WEIR_CHANGE_AT(utime, kUtime, AT_FDCWD, 0, of_times(to), WEIR_LIST(const char* path,
               const utimbuf* to), path, to)
WEIR_CHANGE_AT(utimes, kUtime, AT_FDCWD, 0, of_times(to), WEIR_LIST(const char* path,
               const timeval* to), path, to)
WEIR_CHANGE_AT(lutimes, kUtime, AT_FDCWD, AT_SYMLINK_NOFOLLOW, of_times(to),
               WEIR_LIST(const char* path, const timeval* to), path, to)
WEIR_CHANGE_AT(futimesat, kUtime, directory, 0, of_times(to), WEIR_LIST(int directory,
               const char* path, const timeval* to), from, path, to)
WEIR_CHANGE_AT(utimensat, kUtime, directory, flags, of_times(to), WEIR_LIST(int directory,
               const char* path, const timespec* to, int flags), from, path, to, flags)
WEIR_CHANGE_OF(futimes, kUtime, of_times(to), WEIR_LIST(int fd, const timeval* to), fd, to)
WEIR_CHANGE_OF(futimens, kUtime, of_times(to), WEIR_LIST(int fd, const timespec* to), fd, to)

#define WEIR_VALUE const char *name, const void *value, size_t n, int flags
WEIR_CHANGE_BY(setxattr, kSetxattr, AT_FDCWD, 0, bring,
               WEIR_LIST(const char* path, WEIR_VALUE), path, name, value, n, flags)
WEIR_CHANGE_BY(lsetxattr, kSetxattr, AT_FDCWD, AT_SYMLINK_NOFOLLOW, bring,
               WEIR_LIST(const char* path, WEIR_VALUE), path, name, value, n, flags)
WEIR_ATTRIBUTE_OF(fsetxattr, kSetxattr, WEIR_LIST(int fd, WEIR_VALUE), fd, name, value, n, flags)
WEIR_CHANGE_BY(removexattr, kRemovexattr, AT_FDCWD, 0, bring,
               WEIR_LIST(const char* path, const char* name), path, name)
WEIR_CHANGE_BY(lremovexattr, kRemovexattr, AT_FDCWD, AT_SYMLINK_NOFOLLOW, bring,
               WEIR_LIST(const char* path, const char* name), path, name)
WEIR_ATTRIBUTE_OF(fremovexattr, kRemovexattr, WEIR_LIST(int fd, const char* name), fd, name)
