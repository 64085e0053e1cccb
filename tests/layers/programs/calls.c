// SPDX-License-Identifier: Apache-2.0
// Calls of POSIX on files that a rule may have put under layers (*.dat), in scenarios. Every
// result, errno, size and byte read is written to standard output, by a system call of its own;
// tests/layers/test_posix.py compares what a plain run and a run with layers say, and the files
// they leave.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef BY_NUMBER
#include "by_number.h"
#endif

extern char **environ;
static int out;
static char b[400];

static void tell(const char *text, int n) {
  if (syscall(SYS_write, out, text, n) != n) _exit(99);
}
static void say(const char *what, long r) {
  char line[300];
  tell(line,
       snprintf(line, sizeof line, "%s %ld %s\n", what, r, r < 0 ? strerrorname_np(errno) : ""));
}
// What the last read got.
static void show(const char *from, int n) {
  char line[500];
  int k = snprintf(line, sizeof line, "  [");
  for (int i = 0; i < n && i < 100; ++i)
    k += snprintf(line + k, sizeof line - k, from[i] >= 32 && from[i] < 127 ? "%c" : "\\%02x",
                  (unsigned char)from[i]);
  tell(line, k + snprintf(line + k, sizeof line - k, "]\n"));
}
#define DO(call) say(#call, (long)(call))

static int fresh(const char *name, int more) {
  return open(name, O_RDWR | O_CREAT | O_TRUNC | more, 0644);
}
static void look(int fd, int n, off_t at) {
  memset(b, '.', sizeof b);
  const long got = pread(fd, b, n, at);
  say("pread", got);
  show(b, got > 0 ? (int)got : 0);
}
static void sizes(int fd, const char *name) {
  struct stat s;
  struct statx x;
  if (fd >= 0 && fstat(fd, &s) == 0) say("fstat", s.st_size);
  if (fd >= 0 && statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &x) == 0) say("statx of it", x.stx_size);
  if (stat(name, &s) == 0) say("stat", s.st_size);
  if (lstat(name, &s) == 0) say("lstat", s.st_size);
  if (fstatat(AT_FDCWD, name, &s, 0) == 0) say("fstatat", s.st_size);
  if (statx(AT_FDCWD, name, 0, STATX_ALL, &x) == 0) say("statx", x.stx_size);
}

static void positions(void) {
  const int f = fresh("a.dat", 0);
  DO(write(f, "hello ", 6));
  DO(write(f, "world", 5));
  sizes(f, "a.dat");
  DO(lseek(f, 0, SEEK_CUR));
  DO(lseek(f, -3, SEEK_END));
  DO(read(f, b, 10));
  show(b, 3);
  DO(read(f, b, 10));
  DO(pwrite(f, "XY", 2, 20));
  look(f, 30, 0);
  DO(lseek(f, 0, SEEK_CUR));
  DO(lseek(f, -1, SEEK_SET));
  DO(lseek(f, LONG_MAX, SEEK_END));
  DO(lseek(f, LONG_MIN, SEEK_CUR));
  DO(lseek(f, 0, 77));
  DO(lseek(f, 1L << 62, SEEK_SET));
  DO(lseek(f, 0, SEEK_HOLE));
  DO(lseek(f, 0, SEEK_DATA));
  DO(lseek(f, 100, SEEK_DATA));
  DO(lseek(f, 100, SEEK_SET));
  DO(read(f, b, 5));
  DO(write(f, "end", 3));
  DO(lseek(f, 0, SEEK_CUR));
  sizes(f, "a.dat");
  look(f, 110, 0);
  DO(close(f));
}

static void lengths(void) {
  const int f = fresh("t.dat", 0);
  DO(write(f, "0123456789", 10));
  DO(ftruncate(f, 50));
  DO(lseek(f, 0, SEEK_END));
  look(f, 60, 0);
  DO(ftruncate(f, -1));
  DO(ftruncate(f, 1L << 62));
  DO(ftruncate(f, 4));
  look(f, 60, 0);
  DO(write(f, "x", 1));
  DO(truncate("t.dat", 12));
  look(f, 60, 0);
  DO(write(f, "k", 1));
  DO(fallocate(f, 0, 0, 70));
  sizes(f, "t.dat");
  DO(posix_fallocate(f, 0, 90));
  DO(posix_fadvise(f, 0, 0, POSIX_FADV_DONTNEED));
  sizes(f, "t.dat");
  int left = 0;
  DO(lseek(f, 80, SEEK_SET));
  DO(ioctl(f, FIONREAD, &left));
  DO(left);
  DO(close(f));
}

static void copies(void) {
  const int f = fresh("d.dat", 0), g = dup(f);
  DO(lseek(g, 5, SEEK_SET));
  DO(write(f, "AB", 2));
  DO(lseek(g, 0, SEEK_CUR));
  DO(close(f));
  DO(write(f, "x", 1));
  DO(read(f, b, 1));
  DO(write(g, "CD", 2));
  look(g, 20, 0);
  const int h = dup2(g, 50);
  DO(write(h, "EF", 2));
  DO(lseek(g, 0, SEEK_CUR));
  DO(dup2(77, 50));
  DO(write(50, "ok", 2));
  const int t = fresh("d2.dat", 0);
  DO(write(t, "bbbb", 4));
  DO(dup2(t, 50) == 50);
  DO(write(50, "cc", 2));
  DO(lseek(t, 0, SEEK_CUR));
  DO(lseek(g, 0, SEEK_CUR));
  DO(dup3(t, t, 0));
  const int u = fcntl(t, F_DUPFD, 60);
  DO(u);
  DO(close(t));
  DO(write(u, "dd", 2));
  DO(close(50));
  DO(close(50));
  look(u, 20, 0);
  DO(close_range(u, u, 0));
  DO(write(u, "x", 1));
  DO(close(g));
}

static void appends(void) {
  const int t = fresh("p.dat", 0);
  DO(write(t, "bbbb", 4));
  const int a = open("p.dat", O_WRONLY | O_APPEND);
  DO(write(a, "app", 3));
  DO(read(a, b, 1));
  DO(pwrite(a, "pw", 2, 0));
  DO(lseek(a, 0, SEEK_CUR));
  DO(write(t, "after", 5));
  look(t, 40, 0);
  sizes(a, "p.dat");
  DO(fcntl(t, F_SETFL, O_APPEND));
  DO(fcntl(t, F_GETFL));
  DO(write(t, "T", 1));
  DO(lseek(t, 0, SEEK_CUR));
  DO(fcntl(t, F_SETFL, 0));
  DO(close(a));
  DO(close(t));
  const int f = open("p.dat", O_RDWR | O_APPEND);
  DO(write(f, "1", 1));
  DO(lseek(f, 0, SEEK_SET));
  DO(write(f, "2", 1));
  DO(lseek(f, 1, SEEK_SET));
  DO(read(f, b, 99));
  DO(close(f));
}

static void refusals(void) {
  const int f = fresh("r.dat", 0);
  DO(write(f, "readable", 8));
  DO(close(f));
  const int r = open("r.dat", O_RDONLY);
  struct iovec *bad = (struct iovec *)8;
  DO(write(r, "x", 1));
  DO(ftruncate(r, 0));
  DO(read(r, NULL, 0));
  DO(read(r, NULL, 4));
  DO(read(r, (void *)8, 4));
  DO(read(r, (void *)-1, 4));
  DO(read(r, b, -1));
  DO(pread(r, b, 4, -1));
  DO(write(r, NULL, 4));
  DO(readv(r, NULL, 3));
  DO(readv(r, bad, 3));
  DO(readv(r, bad, -1));
  DO(readv(r, bad, IOV_MAX + 1));
  DO(lseek(r, 0, SEEK_CUR));
  DO(fsync(r));
  DO(close(r));
  DO(fsync(r));
  DO(open("r.dat", O_CREAT | O_EXCL | O_RDWR, 0600));
  DO(open("nowhere/r.dat", O_CREAT | O_RDWR, 0600));
  DO(open(NULL, O_RDONLY));
  DO(open("r.dat/", O_RDONLY));
  DO(open(".", O_RDWR));
  DO(mkdir("directory.dat", 0755));
  const int d = open("directory.dat", O_RDONLY);
  DO(read(d, b, 1));
  DO(close(d));
}

static void vectors(void) {
  const int r = fresh("v.dat", 0);
  struct iovec v[3] = {{b, 3}, {b + 10, 0}, {b + 20, 4}};
  memcpy(b, "one.......empty.....four..", 26);
  DO(writev(r, v, 3));
  DO(pwritev(r, v, 3, 9));
  DO(pwritev2(r, v + 2, 1, 3, RWF_APPEND));
  DO(pwritev2(r, v + 2, 1, 3, RWF_DSYNC));
  DO(lseek(r, 0, SEEK_CUR));
  memset(b, '.', 40);
  DO(preadv(r, v, 3, 1));
  show(b, 26);
  DO(preadv2(r, v, 3, -1, 0));
  show(b, 26);
  DO(preadv2(r, v, 3, 0, 0x100000));
  DO(preadv2(r, v, 3, 2, RWF_HIPRI));
  DO(preadv(r, v, 3, -5));
  DO(readv(r, v, 0));
  v[0].iov_base = NULL;
  DO(preadv(r, v, 1, 0));
  look(r, 60, 0);
  DO(close(r));
}

static void forks(void) {
  const int f = fresh("f.dat", 0);
  DO(write(f, "parent", 6));
  pid_t p = fork();
  if (p == 0) {
    say("in the child", lseek(f, 0, SEEK_CUR));
    _exit(write(f, "child", 5) != 5);
  }
  waitpid(p, NULL, 0);
  DO(lseek(f, 0, SEEK_CUR));
  DO(write(f, "again", 5));
  look(f, 40, 0);
  DO(close(f));
  const int g = fresh("f2.dat", 0);
  DO(write(g, "12345", 5));
  DO(dup2(g, 9));
  DO(system("echo by system >&9"));
  DO(write(g, "Z", 1));
  look(g, 40, 0);
  DO(close(g));
  DO(close(9));
}

// Descriptors that close on exec, but that a child copies first.
static void spawns(void) {
  int f = fresh("s.dat", O_CLOEXEC);
  DO(write(f, "12345", 5));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, f, 1);
  char *shell[] = {"sh", "-c", "echo spawned", NULL};
  pid_t p = 0;
  DO(posix_spawn(&p, "/bin/sh", &actions, NULL, shell, environ));
  waitpid(p, NULL, 0);
  DO(lseek(f, 0, SEEK_CUR));
  DO(write(f, "Z", 1));
  look(f, 40, 0);
  DO(close(f));
  f = fresh("s2.dat", O_CLOEXEC);
  DO(write(f, "12345", 5));
  p = vfork();
  if (p == 0) {
    dup2(f, 1);
    execl("/bin/sh", "sh", "-c", "echo vforked", (char *)NULL);
    _exit(1);
  }
  waitpid(p, NULL, 0);
  DO(lseek(f, 0, SEEK_CUR));
  DO(write(f, "Z", 1));
  look(f, 40, 0);
  DO(close(f));
}

static void maps(void) {
  const int f = fresh("m.dat", 0);
  DO(write(f, "mapped", 6));
  char *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
  if (m == MAP_FAILED) {
    say("mmap", -1);
  } else {
    show(m, 6);
    m[0] = 'M';
    look(f, 6, 0);
    DO(write(f, "!", 1));
    show(m, 7);
    munmap(m, 4096);
  }
  DO(close(f));
}

static void kernel_copies(void) {
  const int f = fresh("k.dat", 0), g = fresh("k2.dat", 0);
  off_t at = 8;
  DO(write(f, "0123456789", 10));
  DO(write(g, "ab", 2));
  DO(lseek(f, 3, SEEK_SET));
  DO(sendfile(g, f, NULL, 4));
  DO(lseek(f, 0, SEEK_CUR));
  DO(lseek(g, 0, SEEK_CUR));
  DO(write(g, "c", 1));
  DO(copy_file_range(f, &at, g, NULL, 2, 0));
  DO(at);
  DO(lseek(g, 0, SEEK_CUR));
  look(g, 30, 0);
  sizes(g, "k2.dat");
  int ends[2];
  if (pipe(ends) != 0) return;
  DO(lseek(f, 1, SEEK_SET));
  DO(splice(f, NULL, ends[1], NULL, 5, 0));
  DO(splice(ends[0], NULL, g, NULL, 5, 0));
  DO(lseek(f, 0, SEEK_CUR));
  look(g, 30, 0);
  DO(syscall(SYS_write, g, "direct", 6));
  DO(syscall(SYS_lseek, g, 0, SEEK_CUR));
  look(g, 30, 0);
  DO(close(f));
  DO(close(g));
}

static void locks(void) {
  const int f = fresh("l.dat", 0), g = fresh("l2.dat", 0);
  struct flock l = {F_WRLCK, SEEK_SET, 0, 0, 0};
  DO(write(f, "0123456789", 10));
  DO(flock(f, LOCK_EX));
  DO(write(f, "L", 1));
  DO(flock(f, LOCK_UN));
  DO(fcntl(f, F_SETLK, &l));
  DO(write(f, "l", 1));
  l.l_type = F_UNLCK;
  DO(fcntl(f, F_SETLK, &l));
  DO(fcntl(f, F_GETLK, &l));
  DO(write(g, "ab", 2));
  DO(lockf(g, F_LOCK, 3));
  DO(write(g, "lk", 2));
  DO(fcntl(g, F_SETLK, (void *)1));
  DO(lseek(g, 0, SEEK_CUR));
  look(f, 30, 0);
  look(g, 30, 0);
  DO(close(f));
  DO(close(g));
}

static void names(void) {
  const int f = fresh("n.dat", 0);
  DO(write(f, "un", 2));
  DO(rename("n.dat", "n2.dat"));
  DO(write(f, "re", 2));
  const int g = open("n2.dat", O_RDONLY);
  look(g, 9, 0);
  DO(unlink("n2.dat"));
  DO(write(f, "xx", 2));
  look(g, 9, 0);
  DO(close(f));
  DO(close(g));
  DO(open("n2.dat", O_RDONLY));
}

// The same file twice, by its name, cut, and by its descriptor's name.
static void twice(void) {
  char name[64];
  const int f = fresh("w.dat", 0);
  DO(write(f, "first", 5));
  const int g = open("w.dat", O_WRONLY | O_TRUNC);
  DO(write(f, "2nd", 3));
  DO(write(g, "G", 1));
  look(f, 20, 0);
  snprintf(name, sizeof name, "/proc/self/fd/%d", f);
  const int h = open(name, O_RDONLY);
  look(h, 20, 0);
  DO(pwrite(f, "later", 5, 2));
  look(h, 20, 0);
  DO(close(f));
  DO(close(g));
  DO(close(h));
}

static void limits(void) {
  struct rlimit limit;
  signal(SIGXFSZ, SIG_IGN);
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = 20;
  DO(setrlimit(RLIMIT_FSIZE, &limit));
  const int f = fresh("z.dat", 0);
  DO(write(f, "0123456789", 10));
  DO(write(f, "0123456789ab", 12));
  DO(lseek(f, 0, SEEK_CUR));
  DO(write(f, "x", 1));
  DO(ftruncate(f, 30));
  look(f, 30, 0);
  limit.rlim_cur = limit.rlim_max;
  DO(setrlimit(RLIMIT_FSIZE, &limit));
  DO(write(f, "x", 1));
  DO(close(f));
}

static void durable(void) {
  const int f = fresh("y.dat", O_SYNC), g = fresh("y2.dat", 0);
  DO(write(f, "sync", 4));
  DO(write(g, "data", 4));
  DO(fdatasync(g));
  DO(write(g, "more", 4));
  DO(fsync(g));
  DO(syncfs(g));
  sync();
  DO(sync_file_range(g, 0, 0, SYNC_FILE_RANGE_WRITE));
  DO(lseek(g, 0, SEEK_CUR));
  DO(close(f));
  DO(close(g));
}

static const struct {
  const char *name;
  void (*run)(void);
} scenarios[] = {
    {"positions", positions},
    {"lengths", lengths},
    {"copies", copies},
    {"appends", appends},
    {"refusals", refusals},
    {"vectors", vectors},
    {"forks", forks},
    {"spawns", spawns},
    {"maps", maps},
    {"locks", locks},
    {"kernel_copies", kernel_copies},
    {"names", names},
    {"twice", twice},
    {"limits", limits},
    {"durable", durable},
};

int main(void) {
  out = fcntl(1, F_DUPFD, 200);  // a pipe: limits of files do not reach it
  for (unsigned i = 0; i < sizeof scenarios / sizeof *scenarios; ++i) {
    char line[64];
    tell(line, snprintf(line, sizeof line, "# %s\n", scenarios[i].name));
    scenarios[i].run();
  }
  const int left_open = fresh("exit.dat", 0);  // written by whoever runs last
  DO(write(left_open, "at exit", 7));
  return 0;
}
