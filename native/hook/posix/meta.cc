// SPDX-License-Identifier: Apache-2.0
// Calls about files rather than their bytes, on paths: stat and its three generations, access,
// names made and removed.
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "hook/observe.h"
#include "base/scratch.h"
#include "layers/machinery/stack/apart.h"
#include "layers/machinery/stack/names.h"
#include "layers/machinery/stack/park.h"
#include "layers/machinery/stack/posix.h"
#include "layers/machinery/stack/table.h"

using namespace weir::hook;
namespace base = weir::base;
namespace stack = weir::stack;

// A call on a path in the working directory, whose arguments are handed on as they are.
#define WEIR_PATH(symbol, op, parameters, ...)                                                 \
  WEIR_HOOK(int, symbol, parameters) {                                                         \
    return on_path(Op::op, AT_FDCWD, path, 0, [&] { return WEIR_REAL(symbol)(__VA_ARGS__); }); \
  }
#define WEIR_PATH_AT(symbol, op, parameters, ...)                                               \
  WEIR_HOOK(int, symbol, parameters) {                                                          \
    return on_path(Op::op, directory, path, 0, [&] { return WEIR_REAL(symbol)(__VA_ARGS__); }); \
  }

namespace {

// The size of a file that programs must see, where accepted bytes are not the kernel's yet. On the
// platforms that weir knows all generations of stat have one layout.
WEIR_INLINE void patch(int directory, const char* path, struct stat* to) {
  if (WEIR_UNLIKELY(stack::any_unwritten()) && stack::patch_size_of_path(to)) return;
  if (WEIR_UNLIKELY(weir::base::load_relaxed(&stack::forms_kept) != 0))
    stack::patch_size_of_form(directory, path, to);
}

// Of a symbolic link to a file that lies apart from its name: what that file's answer is. True:
// there is one, and it is 0.
template <typename Ask>
bool of_target(int directory, const char* path, Ask ask) {
  const base::Scratch room;
  int said = -1;
  return stack::follow_apart(directory, path, room.data()) && ask(room.data(), &said) && said == 0;
}

template <typename Real>
int asking(int directory, const char* path, bool follow, struct stat* to, Real real) {
  int answer = 0;
  if (stack::has_names_apart() && stack::stat_apart(directory, path, to, &answer)) return answer;
  stack::NameQuestion question{};
  if (stack::remembers_names() && stack::known_stat(&question, directory, path, follow, to))
    return 0;
  const int result = stack::timed_question(real);
  if (WEIR_UNLIKELY(result != 0 && stack::has_names_apart()) && errno == ENOENT && follow &&
      of_target(directory, path, [&](const char* target, int* said) {
        return stack::stat_apart(AT_FDCWD, target, to, said);
      }))
    return 0;
  if (WEIR_UNLIKELY(question.asked) && result == 0)
    stack::learn_stat(question, directory, path, follow, *to);
  if (result == 0) patch(directory, path, to);
  return result;
}

template <typename Real>
int asking_access(int directory, const char* path, int mode, Real real) {
  int answer = 0;
  if (stack::has_names_apart() && stack::access_apart(directory, path, mode, &answer))
    return answer;
  stack::NameQuestion question{};
  if (stack::remembers_names() && stack::known_access(&question, directory, path, mode)) return 0;
  const int result = stack::timed_question(real);
  if (WEIR_UNLIKELY(result != 0 && stack::has_names_apart()) && errno == ENOENT &&
      of_target(directory, path, [&](const char* target, int* said) {
        return stack::access_apart(AT_FDCWD, target, mode, said);
      }))
    return 0;
  if (WEIR_UNLIKELY(question.asked) && result == 0)
    stack::learn_access(question, directory, path, mode);
  return result;
}

template <typename Real>
int asking_of(int fd, struct stat* to, Real real) {
  const int result = real();
  if (result != 0) return result;
  if (stack::File* const f = stack::file_at(fd); WEIR_UNLIKELY(f != nullptr)) {
    if (stack::is_apart(f)) stack::patch_apart(f, to);
    else stack::patch_size(f, fd, to);
  }
  else if (WEIR_UNLIKELY(stack::any_unwritten())) stack::patch_size_of_path(to);
  return 0;
}

// A path of a few calls on a descriptor: "" with AT_EMPTY_PATH.
template <typename Real>
int asking_at(int directory, const char* path, struct stat* to, int flags, Real real) {
  if ((flags & ~(AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT)) == 0)
    return asking(directory, path, (flags & AT_SYMLINK_NOFOLLOW) == 0, to, real);
  const bool of_descriptor = (flags & AT_EMPTY_PATH) != 0 && stack::file_at(directory) != nullptr;
  const int result = real();
  if (result != 0) return result;
  if (WEIR_UNLIKELY(of_descriptor) && (path == nullptr || path[0] == 0))
    stack::patch_size(stack::file_at(directory), directory, to);
  else if (WEIR_UNLIKELY(stack::any_unwritten())) stack::patch_size_of_path(to);
  return 0;
}

// What statx says of a file that lies apart from its name. False: it is none.
bool statx_apart(int directory, const char* path, int flags, struct statx* to, int* result) {
  struct stat about {};
  const bool empty = path == nullptr || path[0] == 0;
  const stack::File* const f = stack::file_at(directory);
  if (empty && (flags & AT_EMPTY_PATH) != 0) {
    if (!stack::is_apart(f) ||
        base::system_call(SYS_fstat, directory, reinterpret_cast<long>(&about)) != 0)
      return false;
    stack::patch_apart(f, &about);
    *result = 0;
  } else if (empty || !stack::stat_apart(directory, path, &about, result)) {
    return false;
  }
  if (*result != 0) return true;
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
  return true;
}

template <typename Real>
int asking_statx(int directory, const char* path, int flags, struct statx* to, Real real) {
  int answer = 0;
  if (stack::has_names_apart() && statx_apart(directory, path, flags, to, &answer)) return answer;
  const int result = real();
  if (WEIR_UNLIKELY(result != 0 && stack::has_names_apart()) && errno == ENOENT &&
      (flags & AT_SYMLINK_NOFOLLOW) == 0 &&
      of_target(directory, path, [&](const char* target, int* said) {
        return statx_apart(AT_FDCWD, target, flags, to, said);
      }))
    return 0;
  if (result != 0 || (to->stx_mask & STATX_SIZE) == 0) return result;
  const bool of_descriptor = (flags & AT_EMPTY_PATH) != 0 && stack::file_at(directory) != nullptr &&
                             (path == nullptr || path[0] == 0);
  if (!of_descriptor && !stack::any_unwritten() &&
      weir::base::load_relaxed(&stack::forms_kept) == 0)
    return result;
  struct stat about {};
  about.st_dev = makedev(to->stx_dev_major, to->stx_dev_minor);
  about.st_ino = to->stx_ino;
  about.st_size = static_cast<off_t>(to->stx_size);
  about.st_mode = (to->stx_mask & STATX_TYPE) != 0 ? to->stx_mode : 0;
  if (of_descriptor) stack::patch_size(stack::file_at(directory), directory, &about);
  else patch(directory, path, &about);
  to->stx_size = static_cast<uint64_t>(about.st_size);
  return result;
}

}  // namespace

#define WEIR_STAT(symbol, op, parameters, ...)                       \
  WEIR_HOOK(int, symbol, parameters) {                               \
    return on_path(Op::op, AT_FDCWD, path, 0, [&] {                  \
      return asking(AT_FDCWD, path, Op::op == Op::kStat, to,         \
                    [&] { return WEIR_REAL(symbol)(__VA_ARGS__); }); \
    });                                                              \
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

#define WEIR_STAT_AT(symbol, parameters, ...)                           \
  WEIR_HOOK(int, symbol, parameters) {                                  \
    return on_path(Op::kFstatat, directory, path, 0, [&] {              \
      return asking_at(directory, path, to, flags,                      \
                       [&] { return WEIR_REAL(symbol)(__VA_ARGS__); }); \
    });                                                                 \
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
    return asking_statx(directory, path, flags, to,
                        [&] { return WEIR_REAL(statx)(directory, path, flags, mask, to); });
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

WEIR_HOOK(int, access, const char* path, int mode) {
  return on_path(Op::kAccess, AT_FDCWD, path, 0, [&] {
    return asking_access(AT_FDCWD, path, mode, [&] { return WEIR_REAL(access)(path, mode); });
  });
}
// What has no answer in memory, but may in a layer.
#define WEIR_ACCESS_AT(symbol, op, directory, parameters, ...)                        \
  WEIR_HOOK(int, symbol, parameters) {                                                \
    return on_path(Op::op, directory, path, 0, [&] {                                  \
      int answer = 0;                                                                 \
      if (stack::has_names_apart() &&                                                 \
          stack::access_apart(directory, path, mode, &answer))                        \
        return answer;                                                                \
      return WEIR_REAL(symbol)(__VA_ARGS__);                                          \
    });                                                                               \
  }
WEIR_ACCESS_AT(eaccess, kAccess, AT_FDCWD, WEIR_LIST(const char* path, int mode), path, mode)
WEIR_ACCESS_AT(euidaccess, kAccess, AT_FDCWD, WEIR_LIST(const char* path, int mode), path, mode)
WEIR_ACCESS_AT(faccessat, kFaccessat, directory,
               WEIR_LIST(int directory, const char* path, int mode, int flags), directory, path,
               mode, flags)

WEIR_PATH(mkdir, kMkdir, WEIR_LIST(const char* path, mode_t mode), path, mode)
WEIR_PATH_AT(mkdirat, kMkdir, WEIR_LIST(int directory, const char* path, mode_t mode), directory,
             path, mode)
// A name goes, or becomes another file's: layers that keep files by name hear of it first.
#define WEIR_NAME(symbol, op, parameters, ...)                                             \
  WEIR_HOOK(int, symbol, parameters) {                                                     \
    return on_path(Op::op, AT_FDCWD, path, 0, [&] {                                        \
      return removing(AT_FDCWD, path, Op::op == Op::kRmdir,                                \
                      [&] { return WEIR_REAL(symbol)(__VA_ARGS__); });                     \
    });                                                                                    \
  }

namespace {

template <typename Real>
int removing(int directory, const char* path, bool of_directory, Real real) {
  if (stack::has_names_apart()) {
    int answer = 0;
    if (of_directory) stack::before_rmdir(directory, path);
    else if (stack::remove_apart(directory, path, &answer)) return answer;
  }
  stack::name_changes(directory, path);
  const int result = stack::names_then_changed(real());
  if (stack::has_names_apart() && result == 0) stack::became_apart(directory, path, false);
  return result;
}

}  // namespace

WEIR_NAME(rmdir, kRmdir, WEIR_LIST(const char* path), path)
WEIR_NAME(unlink, kUnlink, WEIR_LIST(const char* path), path)
WEIR_NAME(remove, kUnlink, WEIR_LIST(const char* path), path)
WEIR_HOOK(int, unlinkat, int directory, const char* path, int flags) {
  const bool of_directory = (flags & AT_REMOVEDIR) != 0;
  return on_path(of_directory ? Op::kRmdir : Op::kUnlink, directory, path, 0, [&] {
    return removing(directory, path, of_directory,
                    [&] { return WEIR_REAL(unlinkat)(directory, path, flags); });
  });
}

namespace {

// The result may be written over the path. Its name then comes first.
template <typename Real>
ssize_t reading_link(int directory, const char* path, const char* to, size_t n, Real real) {
  struct stat about;
  int answer = 0;
  if (stack::has_names_apart() && stack::stat_apart(directory, path, &about, &answer)) {
    errno = EINVAL;  // a file, and no link
    return -1;
  }
  const bool apart = path + PATH_MAX <= to || to + n <= path;
  if (apart || !recording()) return on_path(Op::kReadlink, directory, path, 0, real);
  const uint32_t file = doubtful_path_at(directory, path);
  const uint64_t start = base::ticks();
  const ssize_t result = real();
  Call call{Op::kReadlink, Layer::posix, 0, 0, file, start, base::ticks(), kUnknownOffset, 0};
  set_outcome(call, result < 0);
  record_call(call);
  return result;
}

}  // namespace

WEIR_HOOK(ssize_t, readlink, const char* path, char* to, size_t n) {
  return reading_link(AT_FDCWD, path, to, n, [&] { return WEIR_REAL(readlink)(path, to, n); });
}
WEIR_HOOK(ssize_t, readlinkat, int directory, const char* path, char* to, size_t n) {
  return reading_link(directory, path, to, n,
                      [&] { return WEIR_REAL(readlinkat)(directory, path, to, n); });
}

#define WEIR_TRUNCATE(symbol)                                                                 \
  WEIR_HOOK(int, symbol, const char* path, off_t size) {                                      \
    return on_path(Op::kTruncate, AT_FDCWD, path, size < 0 ? 0 : static_cast<uint64_t>(size), \
                   [&] {                                                                      \
                     int result = 0;                                                          \
                     if (stack::has_names_apart() && size >= 0 &&                             \
                         stack::truncate_apart(path, static_cast<uint64_t>(size), &result))   \
                       return result;                                                         \
                     stack::settle(AT_FDCWD, path);                                           \
                     if (weir::base::load_relaxed(&stack::forms_kept) != 0 &&                 \
                         stack::truncate_form(path, size, &result))                           \
                       return stack::names_then_changed(result);                              \
                     return stack::names_then_changed(WEIR_REAL(symbol)(path, size));         \
                   });                                                                        \
  }
WEIR_TRUNCATE(truncate)
WEIR_TRUNCATE(truncate64)
