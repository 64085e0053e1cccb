// SPDX-License-Identifier: Apache-2.0
// Calls about files: posix/meta.cc, posix/file.cc.
#include "seen.h"

#include <dirent.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <utime.h>

extern int __xstat(int, const char *, struct stat *), __xstat64(int, const char *, struct stat64 *);
extern int __lxstat(int, const char *, struct stat *),
    __lxstat64(int, const char *, struct stat64 *);
extern int __fxstat(int, int, struct stat *), __fxstat64(int, int, struct stat64 *);
extern int __fxstatat(int, int, const char *, struct stat *, int),
    __fxstatat64(int, int, const char *, struct stat64 *, int);
extern char *__realpath_chk(const char *, char *, size_t);

static union {
  struct stat s;
  struct stat64 s64;
  struct statx x;
} facts;

static void sized(int result) {
  say("  %d errno %d, %ld bytes", result, errno, (long)facts.s.st_size);
}

SEEN(stat, "stat") { sized(CALL(stat)(file, &facts.s)); }
ALSO(stat, missing, "[nowhere/file] stat error=ENOENT") {
  tell(CALL(stat)("nowhere/file", &facts.s));
}
ALSO(stat, null, "stat on=- error=EFAULT") { tell(CALL(stat)(NULL, &facts.s)); }
SEEN(stat64, "stat") { sized(CALL(stat64)(file, &facts.s64)); }
SEEN(lstat, "lstat") { sized(CALL(lstat)(file, &facts.s)); }
SEEN(lstat64, "lstat") { sized(CALL(lstat64)(file, &facts.s64)); }
SEEN(__xstat, "stat") { sized(CALL(__xstat)(1, file, &facts.s)); }
SEEN(__xstat64, "stat") { sized(CALL(__xstat64)(1, file, &facts.s64)); }
SEEN(__lxstat, "lstat") { sized(CALL(__lxstat)(1, file, &facts.s)); }
SEEN(__lxstat64, "lstat") { sized(CALL(__lxstat64)(1, file, &facts.s64)); }
SEEN(fstatat, "fstatat") { sized(CALL(fstatat)(AT_FDCWD, file, &facts.s, 0)); }
SEEN(fstatat64, "fstatat") { sized(CALL(fstatat64)(AT_FDCWD, file, &facts.s64, 0)); }
SEEN(__fxstatat, "fstatat") { sized(CALL(__fxstatat)(1, AT_FDCWD, file, &facts.s, 0)); }
SEEN(__fxstatat64, "fstatat") { sized(CALL(__fxstatat64)(1, AT_FDCWD, file, &facts.s64, 0)); }
SEEN(statx, "statx") {
  const int result = CALL(statx)(AT_FDCWD, file, 0, STATX_SIZE, &facts.x);
  say("  %d errno %d, %ld bytes", result, errno, (long)facts.x.stx_size);
}
#define ON_OPEN(symbol, expected, ...)         \
  SEEN(symbol, expected) {                     \
    const int fd = open(file, O_RDWR);         \
    tell(CALL(symbol)(__VA_ARGS__));           \
    close(fd);                                 \
  }
ON_OPEN(fstat, "open; fstat; close", fd, &facts.s)
ON_OPEN(fstat64, "open; fstat; close", fd, &facts.s64)
ON_OPEN(__fxstat, "open; fstat; close", 1, fd, &facts.s)
ON_OPEN(__fxstat64, "open; fstat; close", 1, fd, &facts.s64)

SEEN(access, "access") { tell(CALL(access)(file, R_OK)); }
ALSO(access, missing, "[nowhere/file] access error=ENOENT") {
  tell(CALL(access)("nowhere/file", R_OK));
}
SEEN(eaccess, "access") { tell(CALL(eaccess)(file, R_OK)); }
SEEN(euidaccess, "access") { tell(CALL(euidaccess)(file, R_OK)); }
SEEN(faccessat, "faccessat") { tell(CALL(faccessat)(AT_FDCWD, file, R_OK, 0)); }

SEEN(mkdir, "[mkdir.d] mkdir; rmdir") {
  tell(CALL(mkdir)("mkdir.d", 0700));
  rmdir("mkdir.d");
}
SEEN(mkdirat, "open on=sub; mkdir on=sub/d; close on=sub; rmdir on=sub/d") {
  const int directory = open("sub", O_RDONLY | O_DIRECTORY);
  tell(CALL(mkdirat)(directory, "d", 0700));
  close(directory);
  rmdir("sub/d");
}
SEEN(rmdir, "[rmdir.d] mkdir; rmdir") {
  mkdir("rmdir.d", 0700);
  tell(CALL(rmdir)("rmdir.d"));
}
SEEN(unlink, "unlink; unlink error=ENOENT") {
  tell(CALL(unlink)(file));
  tell(CALL(unlink)(file));
}
SEEN(remove, "unlink") { tell(CALL(remove)(file)); }
SEEN(unlinkat, "unlink") { tell(CALL(unlinkat)(AT_FDCWD, file, 0)); }
ALSO(unlinkat, directory, "[unlinkat.d] mkdir; rmdir") {
  mkdir("unlinkat.d", 0700);
  tell(CALL(unlinkat)(AT_FDCWD, "unlinkat.d", AT_REMOVEDIR));
}
SEEN(rename, "rename; naming below nested on=rename?/*/rename?/*/rename.to") {
  tell(CALL(rename)(file, "rename.to"));
}
SEEN(renameat, "rename; naming below nested on=rename?/*/renameat?/*/renameat.to") {
  tell(CALL(renameat)(AT_FDCWD, file, AT_FDCWD, "renameat.to"));
}
SEEN(renameat2, "rename; naming below nested on=rename?/*/renameat2?/*/renameat2.to") {
  tell(CALL(renameat2)(AT_FDCWD, file, AT_FDCWD, "renameat2.to", RENAME_NOREPLACE));
}
SEEN(link, "link; naming below nested on=link?/*/link?/*/link.to") {
  tell(CALL(link)(file, "link.to"));
}
SEEN(linkat, "link; naming below nested on=link?/*/linkat?/*/linkat.to") {
  tell(CALL(linkat)(AT_FDCWD, file, AT_FDCWD, "linkat.to", 0));
}
SEEN(symlink, "[symlink.to] symlink; naming below nested on=symlink?symlink?/*/symlink.to") {
  tell(CALL(symlink)(file, "symlink.to"));
}
SEEN(symlinkat,
     "[symlinkat.to] symlink; naming below nested on=symlink?symlinkat?/*/symlinkat.to") {
  tell(CALL(symlinkat)(file, AT_FDCWD, "symlinkat.to"));
}
SEEN(readlink, "[readlink.to] symlink; naming below nested on=symlink?*; readlink") {
  char target[64];
  symlink(file, "readlink.to");
  tell(CALL(readlink)("readlink.to", target, sizeof target));
}
SEEN(readlinkat, "[readlinkat.to] symlink; naming below nested on=symlink?*; readlink") {
  char target[64];
  symlink(file, "readlinkat.to");
  tell(CALL(readlinkat)(AT_FDCWD, "readlinkat.to", target, sizeof target));
}
// The C library asks for each part of a path without functions that can be hooked: one record.
SEEN(realpath, "readlink; open; close") {
  char real[PATH_MAX];
  tell(CALL(realpath)(file, real) != NULL);
  close(open(real, O_RDONLY));
}
ALSO(realpath, missing, "[nowhere/file] readlink error=ENOENT") {
  tell(CALL(realpath)("nowhere/file", NULL) != NULL);
}
SEEN(__realpath_chk, "readlink; open; close") {
  char real[PATH_MAX];
  tell(CALL(__realpath_chk)(file, real, sizeof real) != NULL);
  close(open(real, O_RDONLY));
}
SEEN(canonicalize_file_name, "readlink; open; close") {
  char *const real = CALL(canonicalize_file_name)(file);
  tell(real != NULL);
  close(open(real, O_RDONLY));
  free(real);
}
SEEN(truncate, "truncate 7") { tell(CALL(truncate)(file, 7)); }
SEEN(truncate64, "truncate 7") { tell(CALL(truncate64)(file, 7)); }

SEEN(chmod, "chmod") { tell(CALL(chmod)(file, 0600)); }
ALSO(chmod, missing, "[nowhere/file] chmod error=ENOENT") {
  tell(CALL(chmod)("nowhere/file", 0600));
}
SEEN(lchmod, "chmod error=ENOENT on=nowhere") { tell(CALL(lchmod)("nowhere", 0600)); }
ON_OPEN(fchmod, "open; chmod; close", fd, 0600)
SEEN(fchmodat, "chmod") { tell(CALL(fchmodat)(AT_FDCWD, file, 0600, 0)); }
SEEN(chown, "chown") { tell(CALL(chown)(file, -1, -1)); }
SEEN(lchown, "chown") { tell(CALL(lchown)(file, -1, -1)); }
ON_OPEN(fchown, "open; chown; close", fd, -1, -1)
SEEN(fchownat, "chown") { tell(CALL(fchownat)(AT_FDCWD, file, -1, -1, AT_SYMLINK_NOFOLLOW)); }
SEEN(utime, "utime") { tell(CALL(utime)(file, NULL)); }
SEEN(utimes, "utime") { tell(CALL(utimes)(file, NULL)); }
SEEN(lutimes, "utime") { tell(CALL(lutimes)(file, NULL)); }
SEEN(futimesat, "utime") { tell(CALL(futimesat)(AT_FDCWD, file, NULL)); }
SEEN(utimensat, "utime") { tell(CALL(utimensat)(AT_FDCWD, file, NULL, 0)); }
ON_OPEN(futimes, "open; utime; close", fd, NULL)
ON_OPEN(futimens, "open; utime; close", fd, NULL)
// Not every file system has them.
SEEN(setxattr, "setxattr error=EINVAL") { tell(CALL(setxattr)(file, "user.a", "b", 1, 1 << 20)); }
SEEN(lsetxattr, "setxattr error=EINVAL") { tell(CALL(lsetxattr)(file, "user.a", "b", 1, 1 << 20)); }
ON_OPEN(fsetxattr, "open; setxattr error=EINVAL; close", fd, "user.a", "b", 1, 1 << 20)
SEEN(removexattr, "removexattr error=ENOENT on=nowhere") {
  tell(CALL(removexattr)("nowhere", "user.a"));
}
SEEN(lremovexattr, "removexattr error=ENOENT on=nowhere") {
  tell(CALL(lremovexattr)("nowhere", "user.a"));
}
SEEN(fremovexattr, "removexattr error=EBADF on=-") { tell(CALL(fremovexattr)(-1, "user.a")); }

ON_OPEN(fsync, "open; fsync; close", fd)
ON_OPEN(fdatasync, "open; fdatasync; close", fd)
ON_OPEN(syncfs, "open; syncfs; close", fd)
SEEN(sync, "sync on=-") { CALL(sync)(); }
ON_OPEN(sync_file_range, "open; sync_file_range 10 @5; close", fd, 5, 10, SYNC_FILE_RANGE_WRITE)
ON_OPEN(flock, "open; flock; close", fd, LOCK_EX)
ON_OPEN(ftruncate, "open; ftruncate 7; close", fd, 7)
ON_OPEN(ftruncate64, "open; ftruncate 7; close", fd, 7)
ON_OPEN(fallocate, "open; fallocate 50 @20; close", fd, 0, 20, 50)
ON_OPEN(fallocate64, "open; fallocate 50 @20; close", fd, 0, 20, 50)
ON_OPEN(posix_fallocate, "open; posix_fallocate 50 @20; close", fd, 20, 50)
ALSO(posix_fallocate, refused, "open; posix_fallocate 50 @20 error=EBADF; close") {
  const int fd = open(file, O_RDONLY);
  tell(CALL(posix_fallocate)(fd, 20, 50));
  close(fd);
}
ON_OPEN(posix_fallocate64, "open; posix_fallocate 50 @20; close", fd, 20, 50)
ON_OPEN(posix_fadvise, "open; posix_fadvise 10 @0; close", fd, 0, 10, POSIX_FADV_WILLNEED)
ON_OPEN(posix_fadvise64, "open; posix_fadvise 10 @0; close", fd, 0, 10, POSIX_FADV_DONTNEED)

SEEN(opendir, "[sub] opendir; closedir") {
  DIR *directory = CALL(opendir)("sub");
  tell(dirfd(directory));
  closedir(directory);
}
ALSO(opendir, missing, "[nowhere] opendir error=ENOENT") { tell(CALL(opendir)("nowhere") == NULL); }
SEEN(fdopendir, "[sub] open; fdopendir; closedir") {
  DIR *directory = CALL(fdopendir)(open("sub", O_RDONLY | O_DIRECTORY));
  tell(dirfd(directory));
  closedir(directory);
}
#define LISTING(symbol)                                                             \
  SEEN(symbol, "[sub] opendir; readdir; readdir; readdir; readdir; readdir; closedir") {     \
    DIR *directory = opendir("sub");                                                   \
    int entries = 0;                                                                \
    while (CALL(symbol)(directory) != NULL) ++entries;                                 \
    tell(entries);                                                                  \
    closedir(directory);                                                               \
  }
LISTING(readdir)
LISTING(readdir64)
SEEN(rewinddir, "[sub] opendir; readdir; readdir; closedir") {
  DIR *directory = opendir("sub");
  tell(readdir(directory) != NULL);
  CALL(rewinddir)(directory);
  tell(readdir(directory) != NULL);
  closedir(directory);
}
SEEN(closedir, "[sub] opendir; closedir") { tell(CALL(closedir)(opendir("sub"))); }

SEEN(ioctl, "open; close") {
  const int fd = open(file, O_RDONLY);
  int left = 0;
  tell(CALL(ioctl)(fd, FIONREAD, &left));
  tell(left);
  tell(CALL(ioctl)(fd, TCGETS, &left));
  close(fd);
}
#define LOCKING(symbol)                      \
  SEEN(symbol, "open; close") {              \
    const int fd = open(file, O_RDWR);       \
    tell(CALL(symbol)(fd, F_LOCK, 4));       \
    tell(CALL(symbol)(fd, F_ULOCK, 4));      \
    tell(CALL(symbol)(fd, 99, 4));           \
    close(fd);                               \
  }
LOCKING(lockf)
LOCKING(lockf64)
