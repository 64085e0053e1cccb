// SPDX-License-Identifier: Apache-2.0
// Rare calls about files: posix/special.cc.
#include "seen.h"

#include <dirent.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

extern int __xmknod(int, const char *, mode_t, dev_t *),
    __xmknodat(int, int, const char *, mode_t, dev_t *);

static dev_t none;
static char text[256];
static union {
  struct statfs f;
  struct statfs64 f64;
  struct statvfs v;
  struct statvfs64 v64;
} facts;

SEEN(mknod, "[mknod.p] mknod; mknod error=EEXIST; unlink") {
  tell(CALL(mknod)("mknod.p", S_IFIFO | 0600, 0));
  tell(CALL(mknod)("mknod.p", S_IFIFO | 0600, 0));
  unlink("mknod.p");
}
SEEN(mknodat, "[mknodat.p] mknod; unlink") {
  tell(CALL(mknodat)(AT_FDCWD, "mknodat.p", S_IFREG | 0600, 0));
  unlink("mknodat.p");
}
SEEN(__xmknod, "[__xmknod.p] mknod; unlink") {
  tell(CALL(__xmknod)(0, "__xmknod.p", S_IFREG | 0600, &none));
  unlink("__xmknod.p");
}
SEEN(__xmknodat, "[__xmknodat.p] mknod; unlink") {
  tell(CALL(__xmknodat)(0, AT_FDCWD, "__xmknodat.p", S_IFREG | 0600, &none));
  unlink("__xmknodat.p");
}
SEEN(mkfifo, "[mkfifo.p] mknod; unlink") {
  tell(CALL(mkfifo)("mkfifo.p", 0600));
  unlink("mkfifo.p");
}
SEEN(mkfifoat, "[mkfifoat.p] mknod; unlink") {
  tell(CALL(mkfifoat)(AT_FDCWD, "mkfifoat.p", 0600));
  unlink("mkfifoat.p");
}
SEEN(mkdtemp, "[mkdtemp-*] mkdir; rmdir") {
  char name[] = "mkdtemp-XXXXXX";
  tell(CALL(mkdtemp)(name) == name);
  rmdir(name);
}

#define ON_OPEN(symbol, expected, ...)         \
  SEEN(symbol, expected) {                     \
    const int fd = open(file, O_RDWR);         \
    tell(CALL(symbol)(__VA_ARGS__));           \
    close(fd);                                 \
  }
SEEN(getxattr, "getxattr error=ENODATA") {
  tell(CALL(getxattr)(file, "user.none", text, sizeof text));
}
SEEN(lgetxattr, "getxattr error=ENODATA") {
  tell(CALL(lgetxattr)(file, "user.none", text, sizeof text));
}
ON_OPEN(fgetxattr, "open; getxattr error=ENODATA; close", fd, "user.none", text, sizeof text)
SEEN(listxattr, "listxattr") { tell(CALL(listxattr)(file, text, sizeof text)); }
SEEN(llistxattr, "listxattr") { tell(CALL(llistxattr)(file, text, sizeof text)); }
ON_OPEN(flistxattr, "open; listxattr; close", fd, text, sizeof text)

SEEN(statfs, "statfs") { tell(CALL(statfs)(file, &facts.f)); }
ALSO(statfs, missing, "[nowhere] statfs error=ENOENT") { tell(CALL(statfs)("nowhere", &facts.f)); }
SEEN(statfs64, "statfs") { tell(CALL(statfs64)(file, &facts.f64)); }
ON_OPEN(fstatfs, "open; statfs; close", fd, &facts.f)
ON_OPEN(fstatfs64, "open; statfs; close", fd, &facts.f64)
SEEN(statvfs, "statfs") { tell(CALL(statvfs)(file, &facts.v)); }
SEEN(statvfs64, "statfs") { tell(CALL(statvfs64)(file, &facts.v64)); }
ON_OPEN(fstatvfs, "open; statfs; close", fd, &facts.v)
ON_OPEN(fstatvfs64, "open; statfs; close", fd, &facts.v64)

static int not_hidden(const struct dirent *entry) {
  return entry->d_name[0] != '.' && access("sub", F_OK) == 0;
}
static int not_hidden64(const struct dirent64 *entry) { return entry->d_name[0] != '.'; }
SEEN(scandir, "[sub] access nested; access nested; scandir") {
  struct dirent **list;
  tell(CALL(scandir)("sub", &list, not_hidden, alphasort));
}
ALSO(scandir, missing, "[nowhere] scandir error=ENOENT") {
  struct dirent **list;
  tell(CALL(scandir)("nowhere", &list, not_hidden, alphasort));
}
SEEN(scandir64, "[sub] scandir") {
  struct dirent64 **list;
  tell(CALL(scandir64)("sub", &list, not_hidden64, alphasort64));
}
SEEN(scandirat, "[sub] scandir") {
  struct dirent **list;
  tell(CALL(scandirat)(AT_FDCWD, "sub", &list, NULL, alphasort));
}
SEEN(scandirat64, "[sub] scandir") {
  struct dirent64 **list;
  tell(CALL(scandirat64)(AT_FDCWD, "sub", &list, NULL, alphasort64));
}

static union {
  struct file_handle handle;
  char room[sizeof(struct file_handle) + 128];
} known;
SEEN(name_to_handle_at, "name_to_handle_at") {
  int mount;
  known.handle.handle_bytes = 128;
  tell(CALL(name_to_handle_at)(AT_FDCWD, file, &known.handle, &mount, 0));
}
SEEN(open_by_handle_at, "open_by_handle_at on=- error=EBADF") {
  known.handle.handle_bytes = 8;
  tell(CALL(open_by_handle_at)(-1, &known.handle, O_RDONLY));
}
