// SPDX-License-Identifier: Apache-2.0
// Calls about files rather than their bytes, on paths: stat and its three generations, access,
// names made and removed.
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "hook/by_name.h"
#include "hook/observe.h"
#include "layers/machinery/stack/in_memory.h"
#include "layers/machinery/stack/names.h"
#include "layers/machinery/stack/park.h"
#include "layers/machinery/stack/posix.h"
#include "layers/machinery/stack/table.h"

using namespace weir::hook;
namespace base = weir::base;
namespace stack = weir::stack;

namespace {

// The size of a file that programs must see, where accepted bytes are not the kernel's yet. On the
// platforms that weir knows all generations of stat have one layout.
WEIR_INLINE void patch(int directory, const char* path, struct stat* to) {
  if (WEIR_UNLIKELY(stack::any_unwritten()) && stack::patch_size_of_path(to)) return;
  if (WEIR_UNLIKELY(weir::base::load_relaxed(&stack::forms_kept) != 0))
    stack::patch_size_of_form(directory, path, to);
}

template <typename Real>
int asking_kernel(int directory, const char* path, bool follow, struct stat* to, Real real) {
  stack::NameQuestion question{};
  if (stack::remembers_names() && stack::known_stat(&question, directory, path, follow, to))
    return 0;
  const int result = stack::timed_question([&] { return real(directory, path); });
  if (WEIR_UNLIKELY(question.asked) && result == 0)
    stack::learn_stat(question, directory, path, follow, *to);
  if (result == 0) patch(directory, path, to);
  return result;
}

template <typename Real>
int asking(int directory, const char* path, bool follow, struct stat* to, Real real) {
  const auto answer = [to](const stack::NamesOfLayer& layer, const stack::GivenPath& name, char*) {
    struct stat about {};
    const stack::Result r = stat_any_of(layer, name, &about);
    if (r == 0) *to = about;
    return r;
  };
  return by_name(directory, path, follow, answer, [&](int from, const char* there) {
    return asking_kernel(from, there, follow, to, real);
  });
}

template <typename Real>
int asking_access(int directory, const char* path, int mode, bool remembered, Real real) {
  const auto answer = [mode](const stack::NamesOfLayer& layer, const stack::GivenPath& name,
                             char*) {
    return layer.access != nullptr ? layer.access(name, mode) : stack::kPass;
  };
  return by_name(directory, path, true, answer, [&](int from, const char* there) {
    stack::NameQuestion question{};
    if (!remembered) return real(from, there);
    if (stack::remembers_names() && stack::known_access(&question, from, there, mode)) return 0;
    const int result = stack::timed_question([&] { return real(from, there); });
    if (WEIR_UNLIKELY(question.asked) && result == 0)
      stack::learn_access(question, from, there, mode);
    return result;
  });
}

template <typename Real>
int asking_of(int fd, struct stat* to, Real real) {
  stack::File* const f = stack::file_at(fd);
  if (stack::is_in_memory(f)) stack::follow_in_memory(f);
  const int result = real();
  if (result != 0) return result;
  if (WEIR_UNLIKELY(f != nullptr)) {
    if (stack::is_in_memory(f)) stack::patch_stat_in_memory(f, to);
    else stack::patch_size(f, fd, to);
  } else if (WEIR_UNLIKELY(stack::any_layer_has_names() && to->st_nlink == 0 &&
                           S_ISREG(to->st_mode))) {
    stack::patch_stat_inherited(fd, to);
  } else if (WEIR_UNLIKELY(stack::any_unwritten())) {
    stack::patch_size_of_path(to);
  }
  return 0;
}

// A path of a few calls on a descriptor: "" with AT_EMPTY_PATH.
template <typename Real>
int asking_at(int directory, const char* path, struct stat* to, int flags, Real real) {
  if ((flags & ~(AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT)) == 0)
    return asking(directory, path, (flags & AT_SYMLINK_NOFOLLOW) == 0, to, real);
  if ((flags & AT_EMPTY_PATH) != 0 && stack::file_at(directory) != nullptr &&
      (path == nullptr || path[0] == 0))
    return asking_of(directory, to, [&] { return real(directory, path); });
  const int result = real(directory, path);
  if (result != 0) return result;
  if (WEIR_UNLIKELY(stack::any_unwritten())) stack::patch_size_of_path(to);
  return 0;
}

void fill_statx(const struct stat& about, struct statx* to) {
  *to = {};
  to->stx_mask = STATX_BASIC_STATS;
  to->stx_blksize = static_cast<uint32_t>(about.st_blksize);
  to->stx_nlink = static_cast<uint32_t>(about.st_nlink);
  to->stx_uid = about.st_uid;
  to->stx_gid = about.st_gid;
  to->stx_mode = static_cast<uint16_t>(about.st_mode);
  to->stx_ino = about.st_ino;
  to->stx_size = static_cast<uint64_t>(about.st_size);
  to->stx_blocks = static_cast<uint64_t>(about.st_blocks);
  const auto time = [](const timespec& from) {
    return statx_timestamp{from.tv_sec, static_cast<uint32_t>(from.tv_nsec), {}};
  };
  to->stx_atime = time(about.st_atim);
  to->stx_mtime = time(about.st_mtim);
  to->stx_ctime = time(about.st_ctim);
  to->stx_dev_major = major(about.st_dev);
  to->stx_dev_minor = minor(about.st_dev);
}

bool is_of_descriptor(int directory, const char* path, int flags) {
  return (flags & AT_EMPTY_PATH) != 0 && stack::file_at(directory) != nullptr &&
         (path == nullptr || path[0] == 0);
}

// The size, and of a descriptor all that a layer knows better than the kernel.
void patch_statx(int directory, const char* path, int flags, struct statx* to) {
  const stack::File* const f =
      is_of_descriptor(directory, path, flags) ? stack::file_at(directory) : nullptr;
  if (f == nullptr && !stack::any_unwritten() &&
      weir::base::load_relaxed(&stack::forms_kept) == 0)
    return;
  struct stat about {};
  about.st_dev = makedev(to->stx_dev_major, to->stx_dev_minor);
  about.st_ino = to->stx_ino;
  about.st_nlink = to->stx_nlink;
  about.st_size = static_cast<off_t>(to->stx_size);
  about.st_mode = (to->stx_mask & STATX_TYPE) != 0 ? to->stx_mode : 0;
  if (stack::is_in_memory(f)) stack::patch_stat_in_memory(f, &about);
  else if (f != nullptr) stack::patch_size(stack::file_at(directory), directory, &about);
  else patch(directory, path, &about);
  to->stx_size = static_cast<uint64_t>(about.st_size);
  to->stx_dev_major = major(about.st_dev);
  to->stx_dev_minor = minor(about.st_dev);
  to->stx_ino = about.st_ino;
  to->stx_nlink = static_cast<uint32_t>(about.st_nlink);
}

template <typename Real>
int asking_statx(int directory, const char* path, int flags, struct statx* to, Real real) {
  const auto answer = [to](const stack::NamesOfLayer& layer, const stack::GivenPath& name, char*) {
    struct stat about {};
    const stack::Result r = stat_any_of(layer, name, &about);
    if (r == 0) fill_statx(about, to);
    return r;
  };
  return by_name(directory, path, (flags & AT_SYMLINK_NOFOLLOW) == 0, answer,
                 [&](int from, const char* there) {
                   const int result = real(from, there);
                   if (result == 0 && (to->stx_mask & STATX_SIZE) != 0)
                     patch_statx(from, there, flags, to);
                   return result;
                 });
}

}  // namespace

#define WEIR_STAT(symbol, op, parameters, ...)                                                   \
  WEIR_HOOK(int, symbol, parameters) {                                                           \
    return on_path(Op::op, AT_FDCWD, path, 0, [&] {                                              \
      const auto real = [&](int, const char* path) { return WEIR_REAL(symbol)(__VA_ARGS__); };   \
      return asking(AT_FDCWD, path, Op::op == Op::kStat, to, real);                              \
    });                                                                                          \
  }
WEIR_STAT(stat, kStat, WEIR_LIST(const char* path, struct stat* to), path, to)
WEIR_STAT(stat64, kStat, WEIR_LIST(const char* path, struct stat* to), path, to)
WEIR_STAT(lstat, kLstat, WEIR_LIST(const char* path, struct stat* to), path, to)
WEIR_STAT(lstat64, kLstat, WEIR_LIST(const char* path, struct stat* to), path, to)
WEIR_STAT(__xstat, kStat, WEIR_LIST(int version, const char* path, struct stat* to), version, path,
          to)
WEIR_STAT(__xstat64, kStat, WEIR_LIST(int version, const char* path, struct stat* to), version,
          path, to)
WEIR_STAT(__lxstat, kLstat, WEIR_LIST(int version, const char* path, struct stat* to), version,
          path, to)
WEIR_STAT(__lxstat64, kLstat, WEIR_LIST(int version, const char* path, struct stat* to), version,
          path, to)

#define WEIR_STAT_AT(symbol, parameters, ...)                                  \
  WEIR_HOOK(int, symbol, parameters) {                                         \
    return on_path(Op::kFstatat, directory, path, 0, [&] {                     \
      const auto real = [&](int directory, const char* path) {                 \
        return WEIR_REAL(symbol)(__VA_ARGS__);                                 \
      };                                                                       \
      return asking_at(directory, path, to, flags, real);                      \
    });                                                                        \
  }
WEIR_STAT_AT(fstatat, WEIR_LIST(int directory, const char* path, struct stat* to, int flags),
             directory, path, to, flags)
WEIR_STAT_AT(fstatat64, WEIR_LIST(int directory, const char* path, struct stat* to, int flags),
             directory, path, to, flags)
WEIR_STAT_AT(__fxstatat,
             WEIR_LIST(int version, int directory, const char* path, struct stat* to, int flags),
             version, directory, path, to, flags)
WEIR_STAT_AT(__fxstatat64,
             WEIR_LIST(int version, int directory, const char* path, struct stat* to, int flags),
             version, directory, path, to, flags)

WEIR_HOOK(int, statx, int directory, const char* path, int flags, unsigned mask, struct statx* to) {
  return on_path(Op::kStatx, directory, path, 0, [&] {
    return asking_statx(directory, path, flags, to, [&](int from, const char* there) {
      return WEIR_REAL(statx)(from, there, flags, mask, to);
    });
  });
}

#define WEIR_FSTAT(symbol, parameters, ...)                                     \
  WEIR_HOOK(int, symbol, parameters) {                                          \
    return on_descriptor(Op::kFstat, fd, kUnknownOffset, 0, [&] {               \
      return asking_of(fd, to, [&] { return WEIR_REAL(symbol)(__VA_ARGS__); }); \
    });                                                                         \
  }
WEIR_FSTAT(fstat, WEIR_LIST(int fd, struct stat* to), fd, to)
WEIR_FSTAT(fstat64, WEIR_LIST(int fd, struct stat* to), fd, to)
WEIR_FSTAT(__fxstat, WEIR_LIST(int version, int fd, struct stat* to), version, fd, to)
WEIR_FSTAT(__fxstat64, WEIR_LIST(int version, int fd, struct stat* to), version, fd, to)

#define WEIR_ACCESS(symbol, op, directory, remembered, parameters, ...)                    \
  WEIR_HOOK(int, symbol, parameters) {                                                     \
    return on_path(Op::op, directory, path, 0, [&] {                                       \
      return asking_access(directory, path, mode, remembered,                              \
                           [&]([[maybe_unused]] int from, const char* path) {              \
                             return WEIR_REAL(symbol)(__VA_ARGS__);                        \
                           });                                                             \
    });                                                                                    \
  }
WEIR_ACCESS(access, kAccess, AT_FDCWD, true, WEIR_LIST(const char* path, int mode), path, mode)
WEIR_ACCESS(eaccess, kAccess, AT_FDCWD, false, WEIR_LIST(const char* path, int mode), path, mode)
WEIR_ACCESS(euidaccess, kAccess, AT_FDCWD, false, WEIR_LIST(const char* path, int mode), path,
            mode)
WEIR_ACCESS(faccessat, kFaccessat, directory, false,
            WEIR_LIST(int directory, const char* path, int mode, int flags), from, path, mode,
            flags)

#define WEIR_MKDIR(symbol, directory, parameters, ...)                                         \
  WEIR_HOOK(int, symbol, parameters) {                                                         \
    return on_path(Op::kMkdir, directory, path, 0, [&] {                                       \
      return making(directory, path, [&] { return WEIR_REAL(symbol)(__VA_ARGS__); });          \
    });                                                                                        \
  }
WEIR_MKDIR(mkdir, AT_FDCWD, WEIR_LIST(const char* path, mode_t mode), path, mode)
WEIR_MKDIR(mkdirat, directory, WEIR_LIST(int directory, const char* path, mode_t mode), directory,
           path, mode)

namespace {

// A name goes: layers that keep files by name hear of it first.
template <typename Real>
int removing(int directory, const char* path, bool file, bool of_directory, Real real) {
  stack::name_changes(directory, path);
  return stack::names_then_changed(removing_by_name(directory, path, file, of_directory, real));
}

}  // namespace

#define WEIR_REMOVE(symbol, op, file, of_directory)                                \
  WEIR_HOOK(int, symbol, const char* path) {                                       \
    return on_path(Op::op, AT_FDCWD, path, 0, [&] {                                \
      return removing(AT_FDCWD, path, file, of_directory,                          \
                      [&] { return WEIR_REAL(symbol)(path); });                    \
    });                                                                            \
  }
WEIR_REMOVE(rmdir, kRmdir, false, true)
WEIR_REMOVE(unlink, kUnlink, true, false)
WEIR_REMOVE(remove, kUnlink, true, true)
WEIR_HOOK(int, unlinkat, int directory, const char* path, int flags) {
  const bool of_directory = (flags & AT_REMOVEDIR) != 0;
  return on_path(of_directory ? Op::kRmdir : Op::kUnlink, directory, path, 0, [&] {
    return removing(directory, path, !of_directory, of_directory,
                    [&] { return WEIR_REAL(unlinkat)(directory, path, flags); });
  });
}

namespace {

// A query whose result may be written over the path: the path's name comes first.
void record_query(uint32_t file, uint64_t start, bool failed) {
  Call call{Op::kReadlink, Layer::posix, 0, 0, file, start, base::ticks(), kUnknownOffset, 0};
  set_outcome(call, failed);
  record_call(call);
}

template <typename Real>
ssize_t reading_link(int directory, const char* path, const char* to, size_t n, Real real) {
  const auto reading = [&] {
    return by_name(directory, path, false, same_for_all(-EINVAL), real);  // a file, and no link
  };
  const bool apart = path + PATH_MAX <= to || to + n <= path;
  if (apart || !recording()) return on_path(Op::kReadlink, directory, path, 0, reading);
  const uint32_t file = doubtful_path_at(directory, path);
  const uint64_t start = base::ticks();
  const ssize_t result = reading();
  record_query(file, start, result < 0);
  return result;
}

}  // namespace

WEIR_HOOK(ssize_t, readlink, const char* path, char* to, size_t n) {
  return reading_link(AT_FDCWD, path, to, n,
                      [&](int, const char* there) { return WEIR_REAL(readlink)(there, to, n); });
}
WEIR_HOOK(ssize_t, readlinkat, int directory, const char* path, char* to, size_t n) {
  return reading_link(directory, path, to, n, [&](int from, const char* there) {
    return WEIR_REAL(readlinkat)(from, there, to, n);
  });
}

namespace {

// The C library asks the kernel itself, once for each part of the path, and does not find files of
// layers.
template <typename Real>
char* real_path(const char* path, char* to, Real real) {
  const int before = errno;
  char* const result = real();
  if (WEIR_LIKELY(!stack::any_layer_has_names() || result != nullptr) || errno != ENOENT ||
      path == nullptr || path[0] == 0)
    return result;
  const base::Scratch room;
  if (!stack::find_real_path(path, room.data())) return result;
  const int there = by_name(AT_FDCWD, room.data(), false, same_for_all(0),
                            [](int, const char* name) { return WEIR_REAL(access)(name, F_OK); });
  if (there != 0 || strlen(room.data()) >= PATH_MAX) return result;
  errno = before;
  return to != nullptr ? strcpy(to, room.data()) : strdup(room.data());
}

// One record, which is as long as all that the C library asks.
template <typename Real>
char* resolving(const char* path, char* to, Real real) {
  if (!recording()) return real_path(path, to, real);
  const uint32_t file = doubtful_path_at(AT_FDCWD, path);
  const uint64_t start = base::ticks();
  char* const result = real_path(path, to, real);
  record_query(file, start, result == nullptr);
  return result;
}

}  // namespace

WEIR_HOOK(char*, realpath, const char* path, char* to) {
  return resolving(path, to, [&] { return WEIR_REAL(realpath)(path, to); });
}
WEIR_HOOK(char*, __realpath_chk, const char* path, char* to, size_t room) {
  return resolving(path, to, [&] { return WEIR_REAL(__realpath_chk)(path, to, room); });
}
WEIR_HOOK(char*, canonicalize_file_name, const char* path) {
  return resolving(path, nullptr, [&] { return WEIR_REAL(canonicalize_file_name)(path); });
}

namespace {

template <typename Real>
int truncating(const char* path, off_t size, Real real) {
  stack::settle(AT_FDCWD, path);
  int result = 0;
  if (base::load_relaxed(&stack::forms_kept) != 0 && stack::truncate_form(path, size, &result))
    return stack::names_then_changed(result);
  const auto answer = [size](const stack::NamesOfLayer& layer, const stack::GivenPath& name,
                             char*) {
    return layer.truncate != nullptr && size >= 0
               ? layer.truncate(name, static_cast<uint64_t>(size))
               : stack::kPass;
  };
  return stack::names_then_changed(changing_by_name(
      AT_FDCWD, path, true, answer, [&](int, const char* there) { return real(there); }));
}

}  // namespace

#define WEIR_TRUNCATE(symbol)                                                                 \
  WEIR_HOOK(int, symbol, const char* path, off_t size) {                                      \
    return on_path(Op::kTruncate, AT_FDCWD, path, size < 0 ? 0 : static_cast<uint64_t>(size), \
                   [&] {                                                                      \
                     return truncating(path, size, [&](const char* there) {                   \
                       return WEIR_REAL(symbol)(there, size);                                 \
                     });                                                                      \
                   });                                                                        \
  }
WEIR_TRUNCATE(truncate)
WEIR_TRUNCATE(truncate64)
