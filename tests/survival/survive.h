// SPDX-License-Identifier: Apache-2.0
// What the guests of the survival tests share. Put before each of them by the `guest` fixture.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

// Ends the guest with 99 when something that must hold does not.
#define MUST(what)                                                                   \
  do {                                                                               \
    if (!(what)) {                                                                   \
      char text[512];                                                                \
      int n = snprintf(text, sizeof text, "line %d: %s (errno %d)\n", __LINE__, #what, errno); \
      syscall(SYS_write, 2, text, n);                                                \
      syscall(SYS_exit_group, 99);                                                   \
    }                                                                                \
  } while (0)

static inline int open_new(const char* path) {
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  MUST(fd >= 0);
  return fd;
}
