/* SPDX-License-Identifier: Apache-2.0
 * reaps PROGRAM WHEN: two children that are killed, waited for when both are dead ("later"), or one
 * of them by a handler while the other is waited for. */
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static pid_t first, second;
static int ends[2];
static void reap(int signal) {
  int status;
  if (first != 0 && waitpid(first, &status, WNOHANG) == first) first = 0, write(ends[1], "\n", 1);
}
int main(int count, char **arguments) {
  char *line[] = {arguments[1], "SIGSEGV", 0}, all[4096] = "read x; exec ";
  char *later[] = {"sh", "-c", strcat(strcat(all, arguments[1]), " SIGSEGV"), 0};
  siginfo_t about;
  int status;
  if (!strcmp(arguments[2], "later")) {  /* both are dead when they are asked for */
    posix_spawn(&first, line[0], 0, 0, line, environ);
    posix_spawn(&second, line[0], 0, 0, line, environ);
    for (int i = 0; i < 2; ++i) waitid(P_PID, i ? first : second, &about, WEXITED | WNOWAIT);
    return waitpid(first, &status, WNOHANG) != first || waitpid(-1, &status, WNOHANG) != second;
  }
  pipe(ends);
  dup2(ends[0], 0);
  posix_spawnp(&second, "sh", 0, 0, later, environ);
  sigset_t set;
  sigemptyset(&set), sigaddset(&set, SIGCHLD), sigprocmask(SIG_BLOCK, &set, 0);
  signal(SIGCHLD, reap);
  posix_spawn(&first, line[0], 0, 0, line, environ);
  sigprocmask(SIG_UNBLOCK, &set, 0);
  return waitpid(second, &status, 0) != second;
}
