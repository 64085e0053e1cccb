// SPDX-License-Identifier: Apache-2.0
// Calls about files that are rare: special files and temporary directories are made, extended
// attributes and file systems are queried, a directory is read at once, a file is opened by its
// handle.
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/vfs.h>

#include "hook/observe.h"
#include "hook/posix/directory.h"
#include "layers/machinery/stack/apart.h"
#include "layers/machinery/stack/table.h"

using namespace weir::hook;
namespace stack = weir::stack;
using weir::trace::thread_log;

#define WEIR_QUERY_AT(symbol, op, result, directory, parameters, ...)                           \
  WEIR_HOOK(result, symbol, parameters) {                                                       \
    return on_path(Op::op, directory, path, 0, [&] { return WEIR_REAL(symbol)(__VA_ARGS__); }); \
  }
#define WEIR_QUERY_OF(symbol, op, result, parameters, ...)                \
  WEIR_HOOK(result, symbol, parameters) {                                 \
    return on_descriptor(Op::op, fd, kUnknownOffset, 0,                   \
                         [&] { return WEIR_REAL(symbol)(__VA_ARGS__); }); \
  }

WEIR_QUERY_AT(mknod, kMknod, int, AT_FDCWD, WEIR_LIST(const char* path, mode_t mode, dev_t device),
              path, mode, device)
WEIR_QUERY_AT(mknodat, kMknod, int, directory,
              WEIR_LIST(int directory, const char* path, mode_t mode, dev_t device), directory,
              path, mode, device)
WEIR_QUERY_AT(__xmknod, kMknod, int, AT_FDCWD,
              WEIR_LIST(int version, const char* path, mode_t mode, dev_t* device), version, path,
              mode, device)
WEIR_QUERY_AT(__xmknodat, kMknod, int, directory,
              WEIR_LIST(int version, int directory, const char* path, mode_t mode, dev_t* device),
              version, directory, path, mode, device)
WEIR_QUERY_AT(mkfifo, kMknod, int, AT_FDCWD, WEIR_LIST(const char* path, mode_t mode), path, mode)
WEIR_QUERY_AT(mkfifoat, kMknod, int, directory,
              WEIR_LIST(int directory, const char* path, mode_t mode), directory, path, mode)

// A file that lies apart from its name has no extended attributes: `error`, or an empty list.
#define WEIR_ATTRIBUTES(symbol, op, error, parameters, ...)                                      \
  WEIR_HOOK(ssize_t, symbol, parameters) {                                                       \
    return on_path(Op::op, AT_FDCWD, path, 0, [&]() -> ssize_t {                                 \
      struct stat about;                                                                         \
      int answer = 0;                                                                            \
      if (!stack::has_names_apart() || !stack::stat_apart(AT_FDCWD, path, &about, &answer))      \
        return WEIR_REAL(symbol)(__VA_ARGS__);                                                   \
      if (answer == 0 && error == 0) return 0;                                                   \
      if (answer == 0) errno = error;                                                            \
      return -1;                                                                                 \
    });                                                                                          \
  }
WEIR_ATTRIBUTES(getxattr, kGetxattr, ENODATA,
                WEIR_LIST(const char* path, const char* name, void* to, size_t n), path, name, to,
                n)
WEIR_ATTRIBUTES(lgetxattr, kGetxattr, ENODATA,
                WEIR_LIST(const char* path, const char* name, void* to, size_t n), path, name, to,
                n)
WEIR_QUERY_OF(fgetxattr, kGetxattr, ssize_t,
              WEIR_LIST(int fd, const char* name, void* to, size_t n), fd, name, to, n)
WEIR_ATTRIBUTES(listxattr, kListxattr, 0, WEIR_LIST(const char* path, char* to, size_t n), path,
                to, n)
WEIR_ATTRIBUTES(llistxattr, kListxattr, 0, WEIR_LIST(const char* path, char* to, size_t n), path,
                to, n)
WEIR_QUERY_OF(flistxattr, kListxattr, ssize_t, WEIR_LIST(int fd, char* to, size_t n), fd, to, n)

WEIR_QUERY_AT(statfs, kStatfs, int, AT_FDCWD, WEIR_LIST(const char* path, struct statfs* to), path,
              to)
WEIR_QUERY_AT(statfs64, kStatfs, int, AT_FDCWD, WEIR_LIST(const char* path, struct statfs64* to),
              path, to)
WEIR_QUERY_OF(fstatfs, kStatfs, int, WEIR_LIST(int fd, struct statfs* to), fd, to)
WEIR_QUERY_OF(fstatfs64, kStatfs, int, WEIR_LIST(int fd, struct statfs64* to), fd, to)
WEIR_QUERY_AT(statvfs, kStatfs, int, AT_FDCWD, WEIR_LIST(const char* path, struct statvfs* to),
              path, to)
WEIR_QUERY_AT(statvfs64, kStatfs, int, AT_FDCWD, WEIR_LIST(const char* path, struct statvfs64* to),
              path, to)
WEIR_QUERY_OF(fstatvfs, kStatfs, int, WEIR_LIST(int fd, struct statvfs* to), fd, to)
WEIR_QUERY_OF(fstatvfs64, kStatfs, int, WEIR_LIST(int fd, struct statvfs64* to), fd, to)

// The template becomes the name while the call runs, and the record has the name.
WEIR_HOOK(char*, mkdtemp, char* path) {
  char* made = nullptr;
  on_path(Op::kMkdir, AT_FDCWD, path, 0, [&] {
    made = WEIR_REAL(mkdtemp)(path);
    return made != nullptr ? 0 : -1;
  });
  return made;
}

namespace {

// What filters do lies within this call; the calls that the C library makes in it are its own
// affair.
template <typename Real>
int scanning(int directory, const char* path, Real real) {
  return on_path(Op::kScandir, directory, path, 0, [&] {
    const uint8_t before = thread_log.flags_below;
    thread_log.flags_below = before | weir::wire::kNested;
    const int result = real();
    thread_log.flags_below = before;
    return result;
  });
}

using Filter = int (*)(const void*);
using Order = int (*)(const void*, const void*);

}  // namespace

#define WEIR_SCANDIR(symbol)                                                                       \
  WEIR_HOOK(int, symbol, const char* path, void* list, Filter filter, Order order) {               \
    return scanning(AT_FDCWD, path, [&] {                                                          \
      return complete_scan(AT_FDCWD, path, list, WEIR_REAL(symbol)(path, list, filter, order),     \
                           reinterpret_cast<void*>(filter), reinterpret_cast<void*>(order));       \
    });                                                                                            \
  }
WEIR_SCANDIR(scandir)
WEIR_SCANDIR(scandir64)
#define WEIR_SCANDIR_AT(symbol)                                                               \
  WEIR_HOOK(int, symbol, int directory, const char* path, void* list, Filter filter,          \
            Order order) {                                                                    \
    return scanning(directory, path, [&] {                                                    \
      const int count = WEIR_REAL(symbol)(directory, path, list, filter, order);              \
      return complete_scan(directory, path, list, count, reinterpret_cast<void*>(filter),     \
                           reinterpret_cast<void*>(order));                                   \
    });                                                                                       \
  }
WEIR_SCANDIR_AT(scandirat)
WEIR_SCANDIR_AT(scandirat64)

WEIR_HOOK(int, name_to_handle_at, int directory, const char* path, void* handle, int* mount,
          int flags) {
  return on_path(Op::kNameToHandle, directory, path, 0, [&] {
    if (stack::has_names_apart()) stack::surrender_apart(directory, path);
    return WEIR_REAL(name_to_handle_at)(directory, path, handle, mount, flags);
  });
}
// The kernel alone knows the name: it is queried when the descriptor is used.
WEIR_HOOK(int, open_by_handle_at, int mount, void* handle, int flags) {
  if (WEIR_UNLIKELY(!recording())) return WEIR_REAL(open_by_handle_at)(mount, handle, flags);
  Call call{Op::kOpenByHandle, Layer::posix, 0, 0, 0, weir::base::ticks(), 0, kUnknownOffset, 0};
  const int fd = WEIR_REAL(open_by_handle_at)(mount, handle, flags);
  call.end = weir::base::ticks();
  set_outcome(call, fd < 0);
  if (fd >= 0) {
    closed(fd);
    call.file = file_of(fd);
  }
  record_call(call);
  return fd;
}
