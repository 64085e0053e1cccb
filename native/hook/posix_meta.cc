// SPDX-License-Identifier: Apache-2.0
// Calls about files rather than their bytes, on paths: stat and its three generations, access, names made and removed.
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hook/observe.h"

using namespace weir::hook;
namespace os = weir::os;

// A call on a path in the working directory, whose arguments are handed on as they are.
#define WEIR_PATH(symbol, op, parameters, ...)                                                                            \
  WEIR_HOOK(int, symbol, parameters) {                                                                                    \
    return on_path(Op::op, AT_FDCWD, path, 0, [&] { return WEIR_REAL(symbol)(__VA_ARGS__); });                           \
  }
#define WEIR_PATH_AT(symbol, op, parameters, ...)                                                                         \
  WEIR_HOOK(int, symbol, parameters) {                                                                                    \
    return on_path(Op::op, directory, path, 0, [&] { return WEIR_REAL(symbol)(__VA_ARGS__); });                          \
  }

WEIR_PATH(stat, kStat, WEIR_LIST(const char* path, void* to), path, to)
WEIR_PATH(stat64, kStat, WEIR_LIST(const char* path, void* to), path, to)
WEIR_PATH(lstat, kLstat, WEIR_LIST(const char* path, void* to), path, to)
WEIR_PATH(lstat64, kLstat, WEIR_LIST(const char* path, void* to), path, to)
WEIR_PATH(__xstat, kStat, WEIR_LIST(int version, const char* path, void* to), version, path, to)
WEIR_PATH(__xstat64, kStat, WEIR_LIST(int version, const char* path, void* to), version, path, to)
WEIR_PATH(__lxstat, kLstat, WEIR_LIST(int version, const char* path, void* to), version, path, to)
WEIR_PATH(__lxstat64, kLstat, WEIR_LIST(int version, const char* path, void* to), version, path, to)
WEIR_PATH_AT(fstatat, kFstatat, WEIR_LIST(int directory, const char* path, void* to, int flags), directory, path, to, flags)
WEIR_PATH_AT(fstatat64, kFstatat, WEIR_LIST(int directory, const char* path, void* to, int flags), directory, path, to, flags)
WEIR_PATH_AT(__fxstatat, kFstatat, WEIR_LIST(int version, int directory, const char* path, void* to, int flags), version, directory, path, to, flags)
WEIR_PATH_AT(__fxstatat64, kFstatat, WEIR_LIST(int version, int directory, const char* path, void* to, int flags), version, directory, path, to, flags)
WEIR_PATH_AT(statx, kStatx, WEIR_LIST(int directory, const char* path, int flags, unsigned mask, void* to), directory, path, flags, mask, to)

#define WEIR_FSTAT(symbol)                                                                                             \
  WEIR_HOOK(int, symbol, int fd, void* to) {                                                                           \
    return on_descriptor(Op::kFstat, fd, kUnknownOffset, 0, [&] { return WEIR_REAL(symbol)(fd, to); });               \
  }
WEIR_FSTAT(fstat)
WEIR_FSTAT(fstat64)
#define WEIR_FXSTAT(symbol)                                                                                            \
  WEIR_HOOK(int, symbol, int version, int fd, void* to) {                                                              \
    return on_descriptor(Op::kFstat, fd, kUnknownOffset, 0, [&] { return WEIR_REAL(symbol)(version, fd, to); });      \
  }
WEIR_FXSTAT(__fxstat)
WEIR_FXSTAT(__fxstat64)

WEIR_PATH(access, kAccess, WEIR_LIST(const char* path, int mode), path, mode)
WEIR_PATH(eaccess, kAccess, WEIR_LIST(const char* path, int mode), path, mode)
WEIR_PATH(euidaccess, kAccess, WEIR_LIST(const char* path, int mode), path, mode)
WEIR_PATH_AT(faccessat, kFaccessat, WEIR_LIST(int directory, const char* path, int mode, int flags), directory, path, mode, flags)

WEIR_PATH(mkdir, kMkdir, WEIR_LIST(const char* path, mode_t mode), path, mode)
WEIR_PATH_AT(mkdirat, kMkdir, WEIR_LIST(int directory, const char* path, mode_t mode), directory, path, mode)
WEIR_PATH(rmdir, kRmdir, WEIR_LIST(const char* path), path)
WEIR_PATH(unlink, kUnlink, WEIR_LIST(const char* path), path)
WEIR_PATH(remove, kUnlink, WEIR_LIST(const char* path), path)
WEIR_HOOK(int, unlinkat, int directory, const char* path, int flags) {
  const Op op = (flags & AT_REMOVEDIR) != 0 ? Op::kRmdir : Op::kUnlink;
  return on_path(op, directory, path, 0, [&] { return WEIR_REAL(unlinkat)(directory, path, flags); });
}

// Of two names the record has the one that was there before; of a symbolic link its own.
WEIR_PATH(rename, kRename, WEIR_LIST(const char* path, const char* to), path, to)
WEIR_PATH_AT(renameat, kRename, WEIR_LIST(int directory, const char* path, int to_directory, const char* to), directory, path, to_directory, to)
WEIR_PATH_AT(renameat2, kRename, WEIR_LIST(int directory, const char* path, int to_directory, const char* to, unsigned flags), directory, path, to_directory, to, flags)
WEIR_PATH(link, kLink, WEIR_LIST(const char* path, const char* to), path, to)
WEIR_PATH_AT(linkat, kLink, WEIR_LIST(int directory, const char* path, int to_directory, const char* to, int flags), directory, path, to_directory, to, flags)
WEIR_PATH(symlink, kSymlink, WEIR_LIST(const char* target, const char* path), target, path)
WEIR_PATH_AT(symlinkat, kSymlink, WEIR_LIST(const char* target, int directory, const char* path), target, directory, path)

namespace {

// The result may be written over the path. Its name then comes first.
template <typename Real>
ssize_t reading_link(int directory, const char* path, const char* to, size_t n, Real real) {
  const bool apart = path + PATH_MAX <= to || to + n <= path;
  if (apart || !recording()) return on_path(Op::kReadlink, directory, path, 0, real);
  const uint32_t file = doubtful_path_at(directory, path);
  const uint64_t start = os::ticks();
  const ssize_t result = real();
  Call call{Op::kReadlink, Layer::posix, 0, 0, file, start, os::ticks(), kUnknownOffset, 0};
  set_outcome(call, result < 0);
  keep(call);
  return result;
}

}  // namespace

WEIR_HOOK(ssize_t, readlink, const char* path, char* to, size_t n) {
  return reading_link(AT_FDCWD, path, to, n, [&] { return WEIR_REAL(readlink)(path, to, n); });
}
WEIR_HOOK(ssize_t, readlinkat, int directory, const char* path, char* to, size_t n) {
  return reading_link(directory, path, to, n, [&] { return WEIR_REAL(readlinkat)(directory, path, to, n); });
}

#define WEIR_TRUNCATE(symbol)                                                                                                         \
  WEIR_HOOK(int, symbol, const char* path, off_t size) {                                                                              \
    return on_path(Op::kTruncate, AT_FDCWD, path, size < 0 ? 0 : static_cast<uint64_t>(size), [&] { return WEIR_REAL(symbol)(path, size); }); \
  }
WEIR_TRUNCATE(truncate)
WEIR_TRUNCATE(truncate64)
