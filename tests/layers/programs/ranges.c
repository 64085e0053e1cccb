/* SPDX-License-Identifier: Apache-2.0 */
/* ranges FILE HOW...: locks ranges of a file that is open under layers and tells which bytes the
 * kernel has locked then: it is asked byte by byte through a second opening. HOW: fcntl, ofd or
 * lockf. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BYTES = 64 };
static int other;

/* A call that no hook sees. */
static long kernel(long number, long a, long b, long c) {
  long result;
#if defined(__x86_64__)
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c)
                   : "rcx", "r11", "memory");
#else
  register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b,
                   x2 __asm__("x2") = c;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
  result = x0;
#endif
  return result;
}

static void need(int holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(2);
}

/* The bytes up to BYTES that are locked, as the kernel tells an opening of its own that no hook has
 * seen. */
static void show(const char *title) {
  char seen[BYTES + 1] = {0};
  for (int at = 0; at < BYTES; ++at) {
    struct flock one = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    need(kernel(SYS_fcntl, other, F_OFD_GETLK, (long)&one) == 0, "F_OFD_GETLK");
    seen[at] = one.l_type == F_UNLCK ? '.' : 'X';
  }
  printf("%-24s %s\n", title, seen);
}

static void ask(int fd, int how, short whence, off_t start, off_t bytes, const char *title) {
  struct flock range = {.l_type = F_WRLCK, .l_whence = whence, .l_start = start, .l_len = bytes};
  int result = fcntl(fd, how, &range);
  printf("%-24s %d %d type %d whence %d start %ld len %ld\n", title, result, result ? errno : 0,
         range.l_type, range.l_whence, (long)range.l_start, (long)range.l_len);
}

static void locks(int fd, int set, int get) {
  static const struct { short whence; off_t start, bytes; const char *title;
  } tries[] = {
      {SEEK_SET, 3, 4, "set 3 4"},
      {SEEK_CUR, 2, 5, "current 2 5"},
      {SEEK_CUR, -3, 3, "current -3 3"},
      {SEEK_CUR, 4, -6, "current 4 -6"},
      {SEEK_END, -8, 6, "end -8 6"},
      {SEEK_END, 0, 0, "end 0 0"},
      {SEEK_END, -2, -4, "end -2 -4"},
      {SEEK_CUR, -100, 1, "current -100 1"},
      {SEEK_END, -1000, 2, "end -1000 2"},
      {SEEK_CUR, 0x7fffffffffffffff, 1, "current most 1"},
      {7, 0, 1, "nowhere"},
  };
  for (unsigned i = 0; i < sizeof tries / sizeof *tries; ++i) {
    struct flock range = {.l_type = F_WRLCK,
                          .l_whence = tries[i].whence,
                          .l_start = tries[i].start,
                          .l_len = tries[i].bytes};
    int result = fcntl(fd, set, &range);
    printf("%-24s %d %d\n", tries[i].title, result, result ? errno : 0);
    show(tries[i].title);
    range.l_type = F_UNLCK;
    fcntl(fd, set, &range);
    show("unlocked");
  }
  struct flock theirs = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 20, .l_len = 10};
  need(kernel(SYS_fcntl, other, F_OFD_SETLK, (long)&theirs) == 0, "the other's lock");
  ask(fd, get, SEEK_CUR, 5, 20, "get current 5 20");
  ask(fd, get, SEEK_END, -25, 4, "get end -25 4");
  ask(fd, get, SEEK_CUR, -4, 3, "get current -4 3");
  ask(fd, get, SEEK_END, -3, 0, "get end -3 0");
}

int main(int argc, char **argv) {
  other = kernel(SYS_openat, AT_FDCWD, (long)argv[2], O_RDWR);
  char bytes[40] = "some bytes, of which a position is one.";
  int fd = open(argv[1], O_RDWR);
  need(fd >= 0 && other >= 0, argv[1]);
  need(write(fd, bytes, sizeof bytes) == sizeof bytes, "write");
  need(lseek(fd, 10, SEEK_SET) == 10, "lseek");
  need(read(fd, bytes, 5) == 5, "read");
  if (argv[3][0] == 'f') locks(fd, F_SETLK, F_GETLK);
  if (argv[3][0] == 'o') locks(fd, F_OFD_SETLK, F_OFD_GETLK);
  if (argv[3][0] == 'l') {
    printf("%d\n", lockf(fd, F_TLOCK, 6));
    show("lockf 6");
    need(lockf(fd, F_ULOCK, 6) == 0 && lseek(fd, -4, SEEK_END) == 36, "lseek");
    printf("%d\n", lockf(fd, F_LOCK, -8));
    show("lockf -8");
    printf("%d %d\n", lockf(fd, F_TEST, 3), lockf(fd, F_ULOCK, -8));
    show("unlocked");
  }
  return argc == 4 ? 0 : 2;
}
