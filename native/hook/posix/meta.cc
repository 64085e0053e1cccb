// SPDX-License-Identifier: Apache-2.0
// Calls about files rather than their bytes, on paths: stat and its three generations, access,
// names made and removed.
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "hook/observe.h"
#include "layers/machinery/stack/elsewhere.h"
#include "layers/machinery/stack/names.h"
#include "layers/machinery/stack/park.h"
#include "layers/machinery/stack/posix.h"
#include "layers/machinery/stack/table.h"

using namespace weir::hook;
namespace base = weir::base;
namespace stack = weir::stack;

// A question about a path in the working directory, whose arguments are handed on as they are.
#define WEIR_PATH(symbol, op, parameters, ...)                                                    \
  WEIR_HOOK(int, symbol, parameters) {                                                            \
    return on_path(Op::op, AT_FDCWD, path, 0, [&] {                                               \
      const auto real = [&](int, const char* path) { return WEIR_REAL(symbol)(__VA_ARGS__); };    \
      return stack::by_name(AT_FDCWD, path, true, real);                                          \
    });                                                                                           \
  }

namespace {

// The size of a file that programs must see, where accepted bytes are not the kernel's yet. On the
// platforms that weir knows all generations of stat have one layout.
WEIR_INLINE void patch(int directory, const char* path, struct stat* to) {
  if (WEIR_UNLIKELY(stack::any_unwritten()) && stack::patch_size_of_path(to)) return;
  if (WEIR_UNLIKELY(weir::base::load_relaxed(&stack::forms_kept) != 0))
    stack::patch_size_of_form(directory, path, to);
}

template <typename Real>
int asking(int directory, const char* path, bool follow, struct stat* to, Real real) {
  stack::NameQuestion question{};
  if (stack::remembers_names() && stack::known_stat(&question, directory, path, follow, to))
    return 0;
  const int result = stack::timed_question(real);
  if (WEIR_UNLIKELY(question.asked) && result == 0)
    stack::learn_stat(question, directory, path, follow, *to);
  if (result == 0) patch(directory, path, to);
  return result;
}

template <typename Real>
int asking_access(int directory, const char* path, int mode, Real real) {
  stack::NameQuestion question{};
  if (stack::remembers_names() && stack::known_access(&question, directory, path, mode)) return 0;
  const int result = stack::timed_question(real);
  if (WEIR_UNLIKELY(question.asked) && result == 0)
    stack::learn_access(question, directory, path, mode);
  return result;
}

template <typename Real>
int asking_of(int fd, struct stat* to, Real real) {
  const int result = real();
  if (result != 0) return result;
  if (stack::File* const f = stack::file_at(fd); WEIR_UNLIKELY(f != nullptr))
    stack::patch_size(f, fd, to);
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

template <typename Real>
int asking_statx(int directory, const char* path, int flags, struct statx* to, Real real) {
  const int result = real();
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

#define WEIR_STAT(symbol, op, parameters, ...)                                            \
  WEIR_HOOK(int, symbol, parameters) {                                                    \
    return on_path(Op::op, AT_FDCWD, path, 0, [&] {                                       \
      constexpr bool kFollow = Op::op == Op::kStat;                                       \
      return stack::by_name(AT_FDCWD, path, kFollow, [&](int, const char* path) {         \
        return asking(AT_FDCWD, path, kFollow, to,                                        \
                      [&] { return WEIR_REAL(symbol)(__VA_ARGS__); });                    \
      });                                                                                 \
    });                                                                                   \
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
      const bool follow = (flags & AT_SYMLINK_NOFOLLOW) == 0;            \
      return stack::by_name(directory, path, follow, [&](int directory, const char* path) { \
        return asking_at(directory, path, to, flags,                      \
                         [&] { return WEIR_REAL(symbol)(__VA_ARGS__); }); \
      });                                                                 \
    });                                                                   \
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
    const bool follow = (flags & AT_SYMLINK_NOFOLLOW) == 0;
    return stack::by_name(directory, path, follow, [&](int directory, const char* path) {
      return asking_statx(directory, path, flags, to,
                          [&] { return WEIR_REAL(statx)(directory, path, flags, mask, to); });
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

WEIR_HOOK(int, access, const char* path, int mode) {
  return on_path(Op::kAccess, AT_FDCWD, path, 0, [&] {
    return stack::by_name(AT_FDCWD, path, true, [&](int, const char* path) {
      return asking_access(AT_FDCWD, path, mode, [&] { return WEIR_REAL(access)(path, mode); });
    });
  });
}
WEIR_PATH(eaccess, kAccess, WEIR_LIST(const char* path, int mode), path, mode)
WEIR_PATH(euidaccess, kAccess, WEIR_LIST(const char* path, int mode), path, mode)
WEIR_HOOK(int, faccessat, int directory, const char* path, int mode, int flags) {
  return on_path(Op::kFaccessat, directory, path, 0, [&] {
    const bool follow = (flags & AT_SYMLINK_NOFOLLOW) == 0;
    return stack::by_name(directory, path, follow, [&](int directory, const char* path) {
      return WEIR_REAL(faccessat)(directory, path, mode, flags);
    });
  });
}

WEIR_HOOK(int, mkdir, const char* path, mode_t mode) {
  return on_path(Op::kMkdir, AT_FDCWD, path, 0, [&] {
    return stack::making(AT_FDCWD, path, [&] { return WEIR_REAL(mkdir)(path, mode); });
  });
}
WEIR_HOOK(int, mkdirat, int directory, const char* path, mode_t mode) {
  return on_path(Op::kMkdir, directory, path, 0, [&] {
    return stack::making(directory, path,
                         [&] { return WEIR_REAL(mkdirat)(directory, path, mode); });
  });
}

namespace {

// unlink and rmdir; remove is both.
template <typename Real>
int removing(int directory, const char* path, bool file, bool with_directories, Real real) {
  int result = 0;
  const auto ask = [&](const char* given) {
    const auto& names = *stack::names_elsewhere;
    const stack::Result done = file ? names.remove(directory, given) : stack::kNotElsewhere;
    return done == stack::kNotElsewhere && with_directories
               ? names.remove_directory(directory, given)
               : done;
  };
  return stack::left_to_kernel(path, &result, ask) ? real() : result;
}

}  // namespace

// A name goes, or becomes another file's: layers that keep files by name hear of it first.
#define WEIR_NAME(symbol, op, file, with_directories)                                     \
  WEIR_HOOK(int, symbol, const char* path) {                                              \
    return on_path(Op::op, AT_FDCWD, path, 0, [&] {                                       \
      stack::name_changes(AT_FDCWD, path);                                                \
      return stack::names_then_changed(removing(AT_FDCWD, path, file, with_directories,   \
                                                [&] { return WEIR_REAL(symbol)(path); })); \
    });                                                                                   \
  }
WEIR_NAME(rmdir, kRmdir, false, true)
WEIR_NAME(unlink, kUnlink, true, false)
WEIR_NAME(remove, kUnlink, true, true)
WEIR_HOOK(int, unlinkat, int directory, const char* path, int flags) {
  const Op op = (flags & AT_REMOVEDIR) != 0 ? Op::kRmdir : Op::kUnlink;
  return on_path(op, directory, path, 0, [&] {
    stack::name_changes(directory, path);
    const bool of_directory = (flags & AT_REMOVEDIR) != 0;
    return stack::names_then_changed(
        removing(directory, path, !of_directory, of_directory,
                 [&] { return WEIR_REAL(unlinkat)(directory, path, flags); }));
  });
}

namespace {

// The result may be written over the path. Its name then comes first.
template <typename Real>
ssize_t reading_link(int directory, const char* path, const char* to, size_t n, Real real) {
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
  return reading_link(AT_FDCWD, path, to, n, [&] {
    return stack::by_name(AT_FDCWD, path, false, [&](int, const char* where) {
      return WEIR_REAL(readlink)(where, to, n);
    });
  });
}
WEIR_HOOK(ssize_t, readlinkat, int directory, const char* path, char* to, size_t n) {
  return reading_link(directory, path, to, n,
                      [&] {
    return stack::by_name(directory, path, false, [&](int from, const char* where) {
      return WEIR_REAL(readlinkat)(from, where, to, n);
    });
  });
}

#define WEIR_TRUNCATE(symbol)                                                                 \
  WEIR_HOOK(int, symbol, const char* path, off_t size) {                                      \
    return on_path(Op::kTruncate, AT_FDCWD, path, size < 0 ? 0 : static_cast<uint64_t>(size), \
                   [&] {                                                                      \
                     stack::settle(AT_FDCWD, path);                                           \
                     int result = 0;                                                          \
                     if (weir::base::load_relaxed(&stack::forms_kept) != 0 &&                 \
                         stack::truncate_form(path, size, &result))                           \
                       return stack::names_then_changed(result);                              \
                     const auto cut = [&](int, const char* path) {                            \
                       return WEIR_REAL(symbol)(path, size);                                  \
                     };                                                                       \
                     return stack::names_then_changed(                                        \
                         stack::changing_by_name(AT_FDCWD, path, true, cut));                 \
                   });                                                                        \
  }
WEIR_TRUNCATE(truncate)
WEIR_TRUNCATE(truncate64)
