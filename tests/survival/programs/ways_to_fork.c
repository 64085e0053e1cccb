// SPDX-License-Identifier: Apache-2.0
// ways_to_fork WAY: a child that is made in one of many ways writes its own file and, behind what
// the parent wrote, the parent's. The parent then overwrites its first bytes, which the child's end
// must not undo. Another thread writes a third file all the while.
#include <linux/sched.h>

extern char** environ;
static int data, to_child[2], to_parent[2];
static atomic_int over;

static int in_child(void* unused) {
  (void)unused;
  char byte;
  int own = open_new("child.dat");
  for (int i = 0; i < 100; ++i) MUST(write(own, "child", 5) == 5);
  MUST(write(data, "child", 5) == 5);
  MUST(write(to_parent[1], "x", 1) == 1 && read(to_child[0], &byte, 1) == 1);
  char text[500];
  MUST(pread(own, text, sizeof text, 0) == sizeof text && memcmp(text + 495, "child", 5) == 0);
  MUST(close(data) == 0 && close(own) == 0);
  return 3;
}

// The same as another program: the descriptors are its arguments.
static int as_program(char** numbers) {
  data = atoi(numbers[0]);
  to_child[0] = atoi(numbers[1]);
  to_parent[1] = atoi(numbers[2]);
  return in_child(NULL);
}

static pid_t make(const char* way, char** arguments) {
  static char stack[1 << 18];
  struct clone_args how = {.exit_signal = SIGCHLD};
  pid_t child = -1;
  if (strcmp(way, "clone()") == 0) return clone(in_child, stack + sizeof stack, SIGCHLD, NULL);
  if (strcmp(way, "posix_spawn") == 0) {
    MUST(posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ) == 0);
    return child;
  }
  if (strcmp(way, "vfork") == 0) {
    child = vfork();
    if (child == 0) execve("/proc/self/exe", arguments, environ);
    return child;
  }
  if (strcmp(way, "fork") == 0) child = fork();
  if (strcmp(way, "_Fork") == 0) child = _Fork();
  if (strcmp(way, "SYS_fork") == 0) child = syscall(SYS_fork);
  if (strcmp(way, "SYS_clone") == 0) child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (strcmp(way, "SYS_clone3") == 0) child = syscall(SYS_clone3, &how, sizeof how);
  if (child == 0) _exit(in_child(NULL));
  return child;
}

static void* keep_writing(void* unused) {
  int busy = open_new("busy.dat");
  do MUST(write(busy, "busy", 4) == 4 && lseek(busy, 0, SEEK_SET) == 0);
  while (!atomic_load(&over));
  MUST(close(busy) == 0);
  return unused;
}

int main(int count, char** arguments) {
  if (count == 4) return as_program(arguments + 1);
  pthread_t thread;
  MUST(pthread_create(&thread, NULL, keep_writing, NULL) == 0);
  data = open_new("data.dat");
  for (int i = 0; i < 1000; ++i) MUST(write(data, "parent", 6) == 6);
  MUST(pipe(to_child) == 0 && pipe(to_parent) == 0);
  char numbers[3][16], byte;
  char* others[] = {arguments[0], numbers[0], numbers[1], numbers[2], NULL};
  sprintf(numbers[0], "%d", data), sprintf(numbers[1], "%d", to_child[0]),
      sprintf(numbers[2], "%d", to_parent[1]);
  const pid_t child = make(arguments[1], others);
  MUST(child > 0);
  MUST(close(to_parent[1]) == 0);
  MUST(read(to_parent[0], &byte, 1) == 1);
  MUST(pwrite(data, "PARENT", 6, 0) == 6 && fsync(data) == 0);
  MUST(write(data, "after", 5) == 5);
  MUST(write(to_child[1], "x", 1) == 1);
  int status;
  MUST(waitpid(child, &status, 0) == child);
  MUST(WIFEXITED(status) && WEXITSTATUS(status) == 3);
  atomic_store(&over, 1);
  MUST(pthread_join(thread, NULL) == 0);
  char text[11];
  MUST(pread(data, text, 11, 6000) == 10 && memcmp(text, "childafter", 10) == 0);
  return close(data) != 0;
}
