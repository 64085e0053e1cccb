// SPDX-License-Identifier: Apache-2.0
// Calls about files that are rare: special files and temporary directories are made, extended
// attributes and file systems are queried, a file is opened by its handle.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/vfs.h>

#include "hook/by_name.h"
#include "hook/observe.h"
#include "layers/machinery/stack/table.h"

using namespace weir::hook;
namespace base = weir::base;
namespace stack = weir::stack;

#define WEIR_MAKE(symbol, op, directory, parameters, ...)                                    \
  WEIR_HOOK(int, symbol, parameters) {                                                       \
    return on_path(Op::op, directory, path, 0, [&] {                                         \
      return making(directory, path, [&] { return WEIR_REAL(symbol)(__VA_ARGS__); });        \
    });                                                                                      \
  }
// answer: for a file that a layer answers for.
#define WEIR_QUERY(symbol, op, result, follow, answer, parameters, ...)                       \
  WEIR_HOOK(result, symbol, parameters) {                                                     \
    return on_path(Op::op, AT_FDCWD, path, 0, [&] {                                           \
      return by_name(AT_FDCWD, path, follow, answer,                                          \
                     [&](int, const char* path) { return WEIR_REAL(symbol)(__VA_ARGS__); });  \
    });                                                                                       \
  }
#define WEIR_QUERY_OF(symbol, op, result, parameters, ...)                \
  WEIR_HOOK(result, symbol, parameters) {                                 \
    return on_descriptor(Op::op, fd, kUnknownOffset, 0,                   \
                         [&] { return WEIR_REAL(symbol)(__VA_ARGS__); }); \
  }

WEIR_MAKE(mknod, kMknod, AT_FDCWD, WEIR_LIST(const char* path, mode_t mode, dev_t device),
          path, mode, device)
WEIR_MAKE(mknodat, kMknod, directory,
          WEIR_LIST(int directory, const char* path, mode_t mode, dev_t device), directory,
          path, mode, device)
WEIR_MAKE(__xmknod, kMknod, AT_FDCWD,
          WEIR_LIST(int version, const char* path, mode_t mode, dev_t* device), version, path,
          mode, device)
WEIR_MAKE(__xmknodat, kMknod, directory,
          WEIR_LIST(int version, int directory, const char* path, mode_t mode, dev_t* device),
          version, directory, path, mode, device)
WEIR_MAKE(mkfifo, kMknod, AT_FDCWD, WEIR_LIST(const char* path, mode_t mode), path, mode)
WEIR_MAKE(mkfifoat, kMknod, directory,
          WEIR_LIST(int directory, const char* path, mode_t mode), directory, path, mode)

// Files of layers that answer for them have no extended attributes.
WEIR_QUERY(getxattr, kGetxattr, ssize_t, true, same_for_all(-ENODATA),
           WEIR_LIST(const char* path, const char* name, void* to, size_t n), path, name, to, n)
WEIR_QUERY(lgetxattr, kGetxattr, ssize_t, false, same_for_all(-ENODATA),
           WEIR_LIST(const char* path, const char* name, void* to, size_t n), path, name, to, n)
WEIR_QUERY_OF(fgetxattr, kGetxattr, ssize_t,
              WEIR_LIST(int fd, const char* name, void* to, size_t n), fd, name, to, n)
WEIR_QUERY(listxattr, kListxattr, ssize_t, true, same_for_all(0),
           WEIR_LIST(const char* path, char* to, size_t n), path, to, n)
WEIR_QUERY(llistxattr, kListxattr, ssize_t, false, same_for_all(0),
           WEIR_LIST(const char* path, char* to, size_t n), path, to, n)
WEIR_QUERY_OF(flistxattr, kListxattr, ssize_t, WEIR_LIST(int fd, char* to, size_t n), fd, to, n)

namespace {

// A file that a layer answers for is on the file system of its directory.
stack::Result of_directory(const stack::NamesOfLayer& layer, const stack::GivenPath& path,
                           char* to) {
  struct stat about;
  const stack::Result r = stat_of(layer, path, &about);
  if (r != 0) return r;
  const char* const slash = strrchr(path.path, '/');
  const size_t n = slash == nullptr ? 0 : static_cast<size_t>(slash - path.path) + 1;
  base::Writer(to, base::Scratch::kBytes).add({path.path, n}).add(".");
  return stack::kDirected;
}

}  // namespace

WEIR_QUERY(statfs, kStatfs, int, true, of_directory,
           WEIR_LIST(const char* path, struct statfs* to), path, to)
WEIR_QUERY(statfs64, kStatfs, int, true, of_directory,
           WEIR_LIST(const char* path, struct statfs64* to), path, to)
WEIR_QUERY_OF(fstatfs, kStatfs, int, WEIR_LIST(int fd, struct statfs* to), fd, to)
WEIR_QUERY_OF(fstatfs64, kStatfs, int, WEIR_LIST(int fd, struct statfs64* to), fd, to)
WEIR_QUERY(statvfs, kStatfs, int, true, of_directory,
           WEIR_LIST(const char* path, struct statvfs* to), path, to)
WEIR_QUERY(statvfs64, kStatfs, int, true, of_directory,
           WEIR_LIST(const char* path, struct statvfs64* to), path, to)
WEIR_QUERY_OF(fstatvfs, kStatfs, int, WEIR_LIST(int fd, struct statvfs* to), fd, to)
WEIR_QUERY_OF(fstatvfs64, kStatfs, int, WEIR_LIST(int fd, struct statvfs64* to), fd, to)

// The template becomes the name while the call runs, and the record has the name.
WEIR_HOOK(char*, mkdtemp, char* path) {
  char* made = nullptr;
  on_path(Op::kMkdir, AT_FDCWD, path, 0, [&] {
    made = WEIR_REAL(mkdtemp)(path);
    if (made != nullptr && stack::any_layer_has_names()) stack::name_made(AT_FDCWD, made);
    return made != nullptr ? 0 : -1;
  });
  return made;
}

WEIR_HOOK(int, name_to_handle_at, int directory, const char* path, void* handle, int* mount,
          int flags) {
  return on_path(Op::kNameToHandle, directory, path, 0, [&] {
    return with_real_file(directory, path, EOPNOTSUPP, [&] {
      return WEIR_REAL(name_to_handle_at)(directory, path, handle, mount, flags);
    });
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
