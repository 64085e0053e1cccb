// SPDX-License-Identifier: Apache-2.0
// Other programs: spawn.cc; and the limits of process.cc. None leaves a record of its own; the
// program that is started writes into the case's file, which is compared with the run without weir.
#include "seen.h"

#include <sched.h>
#include <spawn.h>

extern char **environ;

static int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

// A child that becomes a shell whose output goes into the case's file, behind what is there.
#define BECOMING(symbol, ...)                                  \
  SEEN(symbol, "child end=0") {                                \
    const pid_t child = fork();                                \
    if (child == 0) {                                          \
      mark("child", file);                                     \
      char *arguments[] = {"sh", "-c", "echo became", NULL};   \
      char *some[] = {"PATH=/bin:/usr/bin", "WHO=weir", NULL}; \
      (void)arguments, (void)some;                             \
      dup2(open(file, O_WRONLY | O_APPEND), 1);                \
      __VA_ARGS__;                                             \
      _exit(77);                                               \
    }                                                          \
    say("  status %x", (unsigned)wait_for(child));             \
  }
BECOMING(execve, CALL(execve)("/bin/sh", arguments, some))
BECOMING(execveat, CALL(execveat)(AT_FDCWD, "/bin/sh", arguments, some, 0))
BECOMING(fexecve, CALL(fexecve)(open("/bin/sh", O_RDONLY | O_CLOEXEC), arguments, some))
BECOMING(execv, CALL(execv)("/bin/sh", arguments))
BECOMING(execvp, CALL(execvp)("sh", arguments))
BECOMING(execvpe, CALL(execvpe)("sh", arguments, some))
BECOMING(execl,
         CALL(execl)("/bin/sh", "sh", "-c", "echo listed $0 $1", "zero", "one", (char *)NULL))
BECOMING(execlp, CALL(execlp)("sh", "sh", "-c", "echo listed $0 $1", "zero", "one", (char *)NULL))
BECOMING(execle,
         CALL(execle)("/bin/sh", "sh", "-c", "echo listed $0 $WHO", "zero", (char *)NULL, some))

#define SPAWNING(symbol, program)                                                        \
  SEEN(symbol, "") {                                                                     \
    posix_spawn_file_actions_t actions;                                                  \
    posix_spawn_file_actions_init(&actions);                                             \
    posix_spawn_file_actions_addopen(&actions, 1, file, O_WRONLY | O_APPEND, 0);         \
    char *arguments[] = {"sh", "-c", "echo spawned", NULL};                              \
    pid_t child = 0;                                                                     \
    tell(CALL(symbol)(&child, program, &actions, NULL, arguments, environ));             \
    say("  status %x", (unsigned)wait_for(child));                                       \
    posix_spawn_file_actions_destroy(&actions);                                          \
  }
SPAWNING(posix_spawn, "/bin/sh")
SPAWNING(posix_spawnp, "sh")

SEEN(system, "") { tell(CALL(system)("echo by system >> system")); }

SEEN(_Fork, "child end=2") {
  const pid_t child = CALL(_Fork)();
  if (child == 0) {
    mark("child", file);
    _exit(6);
  }
  say("  status %x", (unsigned)wait_for(child));
}

static int cloned(void *with) {
  mark("child", with);
  return 6;
}
SEEN(clone, "child end=2") {
  static char stack[1 << 16];
  say("  status %x",
      (unsigned)wait_for(CALL(clone)(cloned, stack + sizeof stack, SIGCHLD, (void *)file)));
}
// Within the parent's memory, until it ends: its calls are its parent's.
ALSO(clone, within, "access error=ENOENT on=child/clone.within; child end=1") {
  static char stack[1 << 16];
  say("  status %x",
      (unsigned)wait_for(CALL(clone)(cloned, stack + sizeof stack, SIGCHLD | CLONE_VM | CLONE_VFORK,
                                     (void *)file)));
}

#define LIMITING(symbol, type)                                          \
  SEEN(symbol, "open; write 4 @0; close") {                             \
    struct type none;                                                   \
    getrlimit(RLIMIT_FSIZE, (struct rlimit *)&none);                    \
    tell(CALL(symbol)(RLIMIT_FSIZE, &none));                            \
    const int fd = open(file, O_WRONLY);                                \
    tell(write(fd, "four", 4));                                         \
    close(fd);                                                          \
  }
LIMITING(setrlimit, rlimit)
LIMITING(setrlimit64, rlimit64)
SEEN(prlimit, "") {
  struct rlimit before;
  tell(CALL(prlimit)(0, RLIMIT_FSIZE, NULL, &before));
}
SEEN(prlimit64, "") {
  struct rlimit64 before;
  tell(CALL(prlimit64)(0, RLIMIT_FSIZE, NULL, &before));
}
