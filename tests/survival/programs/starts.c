// SPDX-License-Identifier: Apache-2.0
// starts WAY PROGRAM [ARGUMENT...]: writes to files under layers in pieces, starts the program in
// one of many ways while the layers hold bytes, and goes on writing when it has ended. The program
// reads data.dat, log.dat and kept.dat; weir cannot enter it.
#include <sys/socket.h>

extern char** environ;

static void write_pieces(int fd, int count) {
  char line[16];
  for (int i = 0; i < count; ++i) {
    const int n = snprintf(line, sizeof line, "line %6d\n", i);
    MUST(write(fd, line, (size_t)n) == n);
  }
}

static int become(void* arguments) {
  char** list = arguments;
  execvp(list[0], list);
  _exit(98);
}

static const char* command_of(char** arguments) {
  static char command[4096];
  for (; *arguments != NULL; ++arguments) {
    MUST(strlen(command) + strlen(*arguments) + 2 < sizeof command);
    strcat(strcat(command, *arguments), " ");
  }
  return command;
}

static pid_t start(const char* way, char** arguments) {
  static char stack[1 << 16];
  pid_t child = -1;
  if (strcmp(way, "posix_spawn") == 0) {
    MUST(posix_spawnp(&child, arguments[0], NULL, NULL, arguments, environ) == 0);
    return child;
  }
  if (strcmp(way, "clone_vm") == 0) {
    return clone(become, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, arguments);
  }
  if (strcmp(way, "vfork") == 0) {
    child = vfork();
    if (child == 0) {
      execvp(arguments[0], arguments);
      _exit(98);
    }
    return child;
  }
  if (strcmp(way, "fork") == 0) child = fork();
  if (strcmp(way, "_Fork") == 0) child = _Fork();
  if (strcmp(way, "SYS_fork") == 0) child = syscall(SYS_fork);
  if (child == 0) become(arguments);
  return child;
}

static int run(const char* way, char** arguments) {
  if (strcmp(way, "system") == 0) return system(command_of(arguments));
  if (strcmp(way, "popen") == 0) {
    FILE* output = popen(command_of(arguments), "r");
    MUST(output != NULL);
    for (int c; (c = fgetc(output)) != EOF;) putchar(c);
    return pclose(output);
  }
  const pid_t child = start(way, arguments);
  int status = -1;
  MUST(child > 0 && waitpid(child, &status, 0) == child);
  return status;
}

int main(int count, char** arguments) {
  MUST(count > 2);
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC;
  const int data = open("data.dat", flags | O_TRUNC, 0644);
  const int log = open("log.dat", flags | O_APPEND, 0644);
  const int kept = open("kept.dat", flags | O_APPEND, 0644);
  MUST(data >= 0 && log >= 0 && kept >= 0);
  write_pieces(data, 5000);
  write_pieces(log, 100);
  write_pieces(kept, 10);
  MUST(close(kept) == 0);
  const int status = run(arguments[1], arguments + 2);
  write_pieces(data, 1000);
  write_pieces(log, 100);
  MUST(close(data) == 0 && close(log) == 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 97;
}
