// SPDX-License-Identifier: Apache-2.0
// Bytes that pass no call of their own, or none of the program's: posix/map.cc, vfork.cc,
// direct.cc, deepbind.cc.
#include "seen.h"

#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>

static char text[64];

#define MAPPING(symbol)                                                       \
  SEEN(symbol, "open; mmap 25 @0; close; munmap 25") {                        \
    const int fd = open(file, O_RDONLY);                                      \
    char *at = CALL(symbol)(NULL, 25, PROT_READ, MAP_PRIVATE, fd, 0);         \
    say("  %.25s", at);                                                       \
    close(fd);                                                                \
    munmap(at, 25);                                                           \
  }
MAPPING(mmap)
MAPPING(mmap64)
ALSO(mmap, memory, "") {
  void *at = CALL(mmap)(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  tell(munmap(at, 4096));
}
ALSO(mmap, refused, "open; mmap 25 @0 error=EACCES; close") {
  const int fd = open(file, O_WRONLY);
  tell(CALL(mmap)(NULL, 25, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED);
  close(fd);
}
SEEN(mprotect, "open; mmap 25 @0; munmap 25; close") {
  const int fd = open(file, O_RDONLY);
  void *at = mmap(NULL, 25, PROT_READ, MAP_PRIVATE, fd, 0);
  tell(CALL(mprotect)(at, 25, PROT_NONE));
  munmap(at, 25);
  close(fd);
}
SEEN(munmap, "open; mmap 25 @0; munmap 25; close") {
  const int fd = open(file, O_RDONLY);
  tell(CALL(munmap)(mmap(NULL, 25, PROT_READ, MAP_PRIVATE, fd, 0), 25));
  close(fd);
}
SEEN(msync, "open; mmap 25 @0; msync 25; munmap 25; close") {
  const int fd = open(file, O_RDWR);
  char *at = mmap(NULL, 25, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  at[0] = 'A';
  tell(CALL(msync)(at, 25, MS_SYNC));
  munmap(at, 25);
  close(fd);
}

#define SENDING(symbol)                                                                            \
  SEEN(symbol,                                                                                     \
       "open; creat on=" #symbol ".to; sendfile_in 20 @0 below nested; sendfile 20 @0 on=" #symbol \
       ".to;"                                                                                      \
       " close; close on=" #symbol ".to") {                                                        \
    const int in = open(file, O_RDONLY), out = creat(#symbol ".to", 0600);                         \
    tell(CALL(symbol)(out, in, NULL, 20));                                                         \
    close(in);                                                                                     \
    close(out);                                                                                    \
  }
SENDING(sendfile)
SENDING(sendfile64)
SEEN(copy_file_range,
     "open; creat on=copy.to; copy_file_range_in 20 @0 below nested; copy_file_range 20 @0 "
     "on=copy.to;"
     " close; close on=copy.to") {
  const int in = open(file, O_RDONLY), out = creat("copy.to", 0600);
  tell(CALL(copy_file_range)(in, NULL, out, NULL, 20, 0));
  close(in);
  close(out);
}
SEEN(splice,
     "open; splice_in 20 @0 below nested; splice 20 on=pipe:*; close; close on=pipe:*; close "
     "on=pipe:*") {
  int ends[2];
  if (pipe(ends) != 0) return;
  const int in = open(file, O_RDONLY);
  tell(CALL(splice)(in, NULL, ends[1], NULL, 20, 0));
  close(in);
  close(ends[0]);
  close(ends[1]);
}

// By number, as libraries that know better than libc do. The records are those of the calls' own
// functions.
SEEN(syscall, "openat; read 10 @0; lseek @3; pread 5 @6; fsync; close") {
  const long fd = CALL(syscall)(SYS_openat, AT_FDCWD, file, O_RDONLY);
  tell(fd);
  tell(CALL(syscall)(SYS_read, fd, text, 10));
  tell(CALL(syscall)(SYS_lseek, fd, 3, SEEK_SET));
  tell(CALL(syscall)(SYS_pread64, fd, text, 5, 6));
  tell(CALL(syscall)(SYS_fsync, fd));
  tell(CALL(syscall)(SYS_close, fd));
}
ALSO(syscall, writing,
     "creat; write 3 @0; pwrite 3 @9; writev 3 @3; close; open; readv 3 @0; close") {
  struct iovec whole = {text, 3};
  long fd = CALL(syscall)(SYS_creat, file, 0600);
  tell(CALL(syscall)(SYS_write, fd, "abc", 3));
  tell(CALL(syscall)(SYS_pwrite64, fd, "def", 3, 9));
  tell(CALL(syscall)(SYS_writev, fd, &whole, 1));
  tell(CALL(syscall)(SYS_close, fd));
  fd = CALL(syscall)(SYS_open, file, O_RDONLY);
  tell(CALL(syscall)(SYS_readv, fd, &whole, 1));
  tell(CALL(syscall)(SYS_close, fd));
}
ALSO(syscall, others, "") {
  tell(CALL(syscall)(SYS_getpid) == getpid());
  tell(CALL(syscall)(SYS_kill, -1000000000, 0));
  tell(CALL(syscall)(-1));
}
// A seek by number moves the position that the next read starts from.
ALSO(syscall, seek, "open; read 4 @0; lseek @12; read 4 @12; close") {
  const int fd = open(file, O_RDONLY);
  tell(read(fd, text, 4));
  tell(syscall(SYS_lseek, fd, 12, SEEK_SET));
  tell(read(fd, text, 4));
  close(fd);
}

// The child lives in its parent's memory and thread: its calls are in the parent's log, its
// descriptors are its own.
SEEN(vfork, "open; open; read 4; close; close; read 4 @0; close") {
  const int fd = open(file, O_RDONLY);
  const pid_t child = vfork();
  if (child == 0) {
    const int own = open(file, O_RDONLY);
    if (read(own, text, 4) != 4) _exit(1);
    close(own);
    close(fd);
    _exit(7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  tell(status);
  tell(read(fd, text, 4));
  close(fd);
}

// A library that is loaded to look for its symbols in libc first; test_hooks_seen.py builds it.
static void by_library(const char *file) {
  void *library = dlopen(getenv("SEEN_LIBRARY"), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (library == NULL) {
    say("  %s", dlerror());
    return;
  }
  int (*read_file)(const char *, char *, int) =
      (int (*)(const char *, char *, int))dlsym(library, "read_file");
  tell(read_file(file, text, 10));
  say("  %.10s", text);
  dlclose(library);
}
SEEN(dlopen, "open; read 10 @0; close; fopen @0; fread 10; fclose") { by_library(file); }
SEEN(dlsym, "open; read 10 @0; close; fopen @0; fread 10; fclose") { by_library(file); }

SEEN(dlvsym, "") {
  (void)file;
  tell(dlvsym(RTLD_DEFAULT, "getpid", "GLIBC_2.2.5") != NULL);
  tell(dlvsym(RTLD_DEFAULT, "getpid", "GLIBC_0") != NULL);
}
