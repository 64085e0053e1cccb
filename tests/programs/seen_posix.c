// SPDX-License-Identifier: Apache-2.0
// Descriptors and the bytes through them: posix/open.cc, posix/transfer.cc.
#include "seen.h"

#include <sys/uio.h>

extern int __open_2(const char *, int), __open64_2(const char *, int),
    __openat_2(int, const char *, int), __openat64_2(int, const char *, int);
extern ssize_t __read_chk(int, void *, size_t, size_t),
    __pread_chk(int, void *, size_t, off_t, size_t),
    __pread64_chk(int, void *, size_t, off_t, size_t);

static char text[64];
static struct iovec halves[2] = {{text, 4}, {text + 4, 6}};

static void done(int fd) {
  tell(fd);
  close(fd);
}

SEEN(open, "open; close") { done(CALL(open)(file, O_RDONLY)); }
ALSO(open, missing, "[nowhere/file] open error=ENOENT") {
  tell(CALL(open)("nowhere/file", O_RDONLY));
}
ALSO(open, null, "open on=- error=EFAULT") { tell(CALL(open)(NULL, O_RDONLY)); }
ALSO(open, created, "[open.new] open; close") {
  done(CALL(open)("open.new", O_WRONLY | O_CREAT | O_EXCL, 0640));
}
SEEN(open64, "open; close") { done(CALL(open64)(file, O_RDONLY)); }
SEEN(openat, "openat; close") { done(CALL(openat)(AT_FDCWD, file, O_RDONLY)); }
ALSO(openat, directory, "open on=sub; openat on=sub/a; close on=sub/a; close on=sub") {
  const int directory = open("sub", O_RDONLY | O_DIRECTORY);
  done(CALL(openat)(directory, "a", O_RDONLY));
  close(directory);
}
SEEN(openat64, "openat; close") { done(CALL(openat64)(AT_FDCWD, file, O_RDONLY)); }
SEEN(__open_2, "open; close") { done(CALL(__open_2)(file, O_RDONLY)); }
SEEN(__open64_2, "open; close") { done(CALL(__open64_2)(file, O_RDONLY)); }
SEEN(__openat_2, "openat; close") { done(CALL(__openat_2)(AT_FDCWD, file, O_RDONLY)); }
SEEN(__openat64_2, "openat; close") { done(CALL(__openat64_2)(AT_FDCWD, file, O_RDONLY)); }
SEEN(creat, "creat; close") { done(CALL(creat)(file, 0600)); }
SEEN(creat64, "creat; close") { done(CALL(creat64)(file, 0600)); }

#define TEMPORARY(symbol, ...)                                     \
  SEEN(symbol, "[" #symbol "-*] mkstemp; close; unlink") {         \
    char name[] = #symbol "-XXXXXX.x";                             \
    if (strstr(#symbol, "temps") == NULL) name[sizeof name - 3] = 0; \
    done(CALL(symbol)(name __VA_ARGS__));                          \
    unlink(name);                                                  \
  }
TEMPORARY(mkstemp)
TEMPORARY(mkstemp64)
TEMPORARY(mkostemp, , O_APPEND)
TEMPORARY(mkostemp64, , O_APPEND)
TEMPORARY(mkstemps, , 2)
TEMPORARY(mkstemps64, , 2)
TEMPORARY(mkostemps, , 2, O_APPEND)
TEMPORARY(mkostemps64, , 2, O_APPEND)

SEEN(close, "open; close; close on=- error=EBADF") {
  const int fd = open(file, O_RDONLY);
  tell(CALL(close)(fd));
  tell(CALL(close)(fd));
}
SEEN(close_range, "open; dup2; close_range on=-; close on=- error=EBADF; close") {
  const int fd = open(file, O_RDONLY);
  dup2(fd, 305);
  tell(CALL(close_range)(300, 310, 0));
  done(305);
  done(fd);
}
SEEN(closefrom, "open; dup2; close_range on=-; close on=- error=EBADF; close") {
  const int fd = open(file, O_RDONLY);
  dup2(fd, 305);
  CALL(closefrom)(300);
  done(305);
  done(fd);
}

static void copied(int fd, int copy) {
  tell(copy);
  tell(read(copy, text, 3));
  close(copy);
  close(fd);
}
SEEN(dup, "open; dup; read 3; close; close") {
  const int fd = open(file, O_RDONLY);
  copied(fd, CALL(dup)(fd));
}
SEEN(dup2, "open; dup2; read 3; close; close") {
  const int fd = open(file, O_RDONLY);
  copied(fd, CALL(dup2)(fd, 77));
}
SEEN(dup3, "open; dup3; read 3; close; close") {
  const int fd = open(file, O_RDONLY);
  copied(fd, CALL(dup3)(fd, 78, O_CLOEXEC));
}
SEEN(fcntl, "open; fcntl; fcntl; read 3; close; close") {
  const int fd = open(file, O_RDONLY);
  tell(CALL(fcntl)(fd, F_GETFL));
  copied(fd, CALL(fcntl)(fd, F_DUPFD, 50));
}
SEEN(fcntl64, "open; fcntl; read 3; close; close") {
  const int fd = open(file, O_RDONLY);
  copied(fd, CALL(fcntl64)(fd, F_DUPFD_CLOEXEC, 50));
}

// Reads on a new descriptor, twice where the position moves.
#define READING(symbol, expected, ...)                    \
  SEEN(symbol, expected) {                                \
    const int fd = open(file, O_RDONLY);                  \
    memset(text, 0, sizeof text);                         \
    tell(CALL(symbol)(fd, __VA_ARGS__));                  \
    say("  %s", text);                                    \
    done(fd);                                             \
  }
#define WRITING(symbol, expected, ...)                    \
  SEEN(symbol, expected) {                                \
    const int fd = open(file, O_WRONLY);                  \
    memcpy(text, "0123456789", 10);                       \
    tell(CALL(symbol)(fd, __VA_ARGS__));                  \
    done(fd);                                             \
  }
READING(read, "open; read 10 @0; close", text, 10)
ALSO(read, end, "open; read 25 short @0; read short @25; close") {
  const int fd = open(file, O_RDONLY);
  tell(CALL(read)(fd, text, sizeof text));
  tell(CALL(read)(fd, text, sizeof text));
  done(fd);
}
ALSO(read, refused, "open; read 10 error=EBADF; close") {
  const int fd = open(file, O_WRONLY);
  tell(CALL(read)(fd, text, 10));
  done(fd);
}
ALSO(read, fault, "open; read 10 error=EFAULT; read 4 @0; close") {
  const int fd = open(file, O_RDONLY);
  tell(CALL(read)(fd, (void *)8, 10));
  tell(CALL(read)(fd, text, 4));
  done(fd);
}
ALSO(read, closed, "read 10 on=- error=EBADF") { tell(CALL(read)(299, text, 10)); }
READING(__read_chk, "open; read 10 @0; close", text, 10, sizeof text)
READING(pread, "open; pread 5 @6; close", text, 5, 6)
READING(pread64, "open; pread 5 @6; close", text, 5, 6)
READING(__pread_chk, "open; pread 5 @6; close", text, 5, 6, sizeof text)
READING(__pread64_chk, "open; pread 5 @6; close", text, 5, 6, sizeof text)
READING(readv, "open; readv 10 @0; close", halves, 2)
READING(preadv, "open; preadv 10 @6; close", halves, 2, 6)
READING(preadv64, "open; preadv 10 @6; close", halves, 2, 6)
READING(preadv2, "open; preadv2 10 @6; close", halves, 2, 6, 0)
READING(preadv64v2, "open; preadv2 10 @0; close", halves, 2, -1, 0)
WRITING(write, "open; write 10 @0; close", text, 10)
ALSO(write, append, "open; write 3; write 4; close") {
  const int fd = open(file, O_WRONLY | O_APPEND);
  tell(CALL(write)(fd, "abc", 3));
  tell(CALL(write)(fd, "defg", 4));
  done(fd);
}
ALSO(write, full, "[/dev/full] open; write 5 error=ENOSPC; close") {
  const int fd = open("/dev/full", O_WRONLY);
  tell(CALL(write)(fd, "abcde", 5));
  done(fd);
}
WRITING(pwrite, "open; pwrite 10 @100; close", text, 10, 100)
WRITING(pwrite64, "open; pwrite 10 @100; close", text, 10, 100)
WRITING(writev, "open; writev 10 @0; close", halves, 2)
WRITING(pwritev, "open; pwritev 10 @100; close", halves, 2, 100)
WRITING(pwritev64, "open; pwritev 10 @100; close", halves, 2, 100)
WRITING(pwritev2, "open; pwritev2 10 @100; close", halves, 2, 100, 0)
WRITING(pwritev64v2, "open; pwritev2 10 @0; close", halves, 2, -1, 0)

#define SEEKING(symbol)                                                 \
  SEEN(symbol, "open; lseek @6; read 4 @6; lseek @10; close") {         \
    const int fd = open(file, O_RDONLY);                                \
    tell(CALL(symbol)(fd, 6, SEEK_SET));                                \
    tell(read(fd, text, 4));                                            \
    tell(CALL(symbol)(fd, 0, SEEK_CUR));                                \
    done(fd);                                                           \
  }
SEEKING(lseek)
SEEKING(lseek64)
