// SPDX-License-Identifier: Apache-2.0
// other_root DIRECTORY SEED: appends lines to two files, opened and closed for each, and truncates
// some. A child goes on in another root directory, where no start time of a process can be read,
// and as another user.
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned long state;
static unsigned next(unsigned below) {
  state = state * 6364136223846793005ul + 1442695040888963407ul;
  return (unsigned)(state >> 33) % below;
}
static void add(const char* path, const char* who, unsigned number) {
  char line[64];
  const int n = snprintf(line, sizeof line, "%s %08u\n", who, number);
  const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (fd < 0 || write(fd, line, (size_t)n) != n || close(fd) != 0) exit(2);
}
static void go_on(const char* a, const char* b, const char* who, unsigned from, unsigned lines) {
  for (unsigned i = from; i < from + lines; ++i) {
    add(a, who, i);
    if (next(2)) add(b, who, i);
  }
}

static void replace(const char* path, const char* by) {
  const int fd = open(path, O_WRONLY | O_TRUNC | O_CREAT, 0666);
  const long n = (long)strlen(by);
  if (fd < 0 || write(fd, by, (size_t)n) != n || close(fd) != 0) exit(8);
}

static void be_child(const char* directory, int held) {
  if (next(2)) go_on("a.log", "b.log", "child", 0, 1);
  if (chroot(directory) != 0 || chdir("/") != 0) exit(3);
  if (next(2)) go_on("/a.log", "/b.log", "child", 1, 3);
  if (setgroups(0, 0) != 0 || setgid(65534) != 0 || setuid(65534) != 0) exit(4);
  if (next(2)) {
    replace("/d.log", "of the child alone\n");
    if (truncate("/d.log", next(19)) != 0) exit(9);
    add("/d.log", "child", 7);
  }
  const unsigned lines = next(20);
  for (unsigned i = 4; i < 4 + lines; ++i) {
    go_on("/a.log", "/b.log", "child", i, 1);
    if (held >= 0 && write(held, "held by child\n", 14) != 14) exit(5);
  }
  exit(0);
}

int main(int argc, char** argv) {
  if (argc != 3 || chdir(argv[1]) != 0) return 1;
  state = strtoul(argv[2], 0, 10);
  umask(0);
  const unsigned lines = 1 + next(30);
  go_on("a.log", "b.log", "parent", 0, lines);
  if (next(2) && truncate("a.log", 16) != 0) return 10;  // after the first line
  if (next(2)) replace("b.log", "");
  replace("d.log", "");  // the child may not make it
  const int held = next(2) ? open("c.log", O_WRONLY | O_CREAT | O_APPEND, 0666) : -1;
  if (held >= 0 && write(held, "held by parent\n", 15) != 15) return 6;
  const pid_t child = next(2) ? fork() : (pid_t)syscall(SYS_fork);
  if (child == 0) be_child(argv[1], held);
  go_on("a.log", "b.log", "parent", lines, next(30));
  int status = -1;
  waitpid(child, &status, 0);
  if (next(2) && truncate("a.log", 0) != 0) return 11;
  go_on("a.log", "b.log", "parent", 100, 3);
  if (next(2)) add("d.log", "parent", 8);
  return status != 0 ? 7 : 0;
}
