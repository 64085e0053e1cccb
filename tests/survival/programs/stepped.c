// SPDX-License-Identifier: Apache-2.0
// Interrupts one call at each of its instructions: a child for each of them is single-stepped so
// far, then gets a signal whose handler makes calls of its own. arguments: what is interrupted,
// from which instruction (0: the first), to the next one. Prints the number of children and of
// instructions.
#include <sys/ptrace.h>
#include <sys/wait.h>

#ifndef HANDLED
#define HANDLED \
  400  // fills a thread's first two chunks, of 126 and 254 records, and begins the third
#endif

static const char* what;
static long child_number;
static int plain_file, handled_file, layered_file = -1, layered_too = -1;
static volatile sig_atomic_t handlers;
static sigjmp_buf back;
static char block[256];

static int is(const char* name) { return strcmp(what, name) == 0; }

static int open_numbered(const char* name, long number) {
  char path[64];
  snprintf(path, sizeof path, "%s.%ld", name, number);
  return open(path, O_RDWR | O_CREAT, 0644);
}

static void handler(int unused) {
  const int before = errno;
  for (int i = 0; i < HANDLED; ++i) MUST(pwrite(handled_file, "y", 1, i) == 1);
  if (is("open") || is("count")) {
    char path[] = "new.00";
    for (int i = 0; i < 60; ++i) {
      path[4] = '0' + i / 10, path[5] = '0' + i % 10;
      int fd = open(path, O_RDWR | O_CREAT, 0644);
      MUST(fd >= 0 && pwrite(fd, "n", 1, 0) == 1 && close(fd) == 0);
    }
  }
  if (layered_file >= 0) {
    for (int i = 0; i < 8; ++i) {
      MUST(pwrite(layered_file, "h", 1, 4096 * (1 + i)) == 1);
      MUST(pwrite(layered_too, "t", 1, 4096 * i) == 1);
    }
  }
  ++handlers;
  errno = before;
  if (is("jump")) siglongjmp(back, 1);
}

// The child, between two traps.
static void interrupted(void) {
  if (is("open")) {
    __asm__ volatile("int3");
    int fd = open("opened", O_RDWR | O_CREAT, 0644);
    MUST(fd >= 0 && pwrite(fd, "o", 1, 0) == 1);
    __asm__ volatile("int3");
    return;
  }
  if (is("malloc")) {
    __asm__ volatile("int3");
    char* memory = malloc(100000);
    *(volatile char*)memory = 1;
    char* more = calloc(10, 1000);
    free(memory);
    free(more);
    __asm__ volatile("int3");
    return;
  }
  int file = is("layer") ? layered_file : plain_file;
  if (!is("first")) MUST(pwrite(plain_file, "w", 1, 0) == 1);
  if (is("full")) {
    for (int i = 1; i < 126; ++i) MUST(pwrite(plain_file, "w", 1, 0) == 1);
  }
  if (!is("jump") || sigsetjmp(back, 1) == 0) {
    __asm__ volatile("int3");
    MUST(pwrite(file, "x", 1, child_number) == 1);
  }
  __asm__ volatile("int3");
}

static void child(void) {
  struct sigaction act = {.sa_handler = handler, .sa_flags = is("jump") ? SA_NODEFER : 0};
  sigaction(SIGUSR1, &act, NULL);
  if (is("layer") || is("malloc")) {
    layered_file = open_numbered("layered", child_number);
    layered_too = open_numbered("layered_too", child_number);
    MUST(layered_file >= 0 && layered_too >= 0);
  }
  MUST(ptrace(PTRACE_TRACEME, 0, 0, 0) == 0);
  interrupted();
  if (layered_file >= 0) {
    MUST(close(layered_file) == 0 && close(layered_too) == 0);
    layered_file = open_numbered("layered", child_number);
    MUST(pread(layered_file, block, 1, 4096) == handlers &&
         pread(layered_file, block, 1, 8 * 4096) == handlers);
    MUST(handlers == 0 || block[0] == 'h');
    if (is("layer")) MUST(pread(layered_file, block, 1, child_number) == 1 && block[0] == 'x');
    layered_too = open_numbered("layered_too", child_number);
    MUST(pread(layered_too, block, 1, 7 * 4096) == handlers && (handlers == 0 || block[0] == 't'));
  }
  _exit(handlers == 1 ? 0 : 77);
}

static int stopped_by(pid_t pid, int* status) {
  MUST(waitpid(pid, status, 0) == pid);
  return WIFSTOPPED(*status) ? WSTOPSIG(*status) : -1;
}

static pid_t begin_child(void) {
  pid_t pid = fork();
  MUST(pid >= 0);
  if (pid == 0) child();
  int status;
  MUST(stopped_by(pid, &status) == SIGTRAP);
  return pid;
}

// The instruction that the child is at is int3's.
static int at_trap(pid_t pid) {
  siginfo_t info;
  MUST(ptrace(PTRACE_GETSIGINFO, pid, 0, &info) == 0);
  return info.si_code == SI_KERNEL;
}

static long instructions(void) {
  pid_t pid = begin_child();
  int status;
  long steps = 0;
  do {
    MUST(ptrace(PTRACE_SINGLESTEP, pid, 0, 0) == 0 && stopped_by(pid, &status) == SIGTRAP);
    ++steps;
  } while (!at_trap(pid));
  MUST(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
  return steps;
}

static void interrupt_at(long steps) {
  pid_t pid = begin_child();
  int status, by = SIGUSR1;
  for (long i = 0; i < steps; ++i) {
    MUST(ptrace(PTRACE_SINGLESTEP, pid, 0, 0) == 0 && stopped_by(pid, &status) == SIGTRAP);
    if (at_trap(pid)) break;  // this child needed fewer
  }
  for (;;) {
    MUST(ptrace(PTRACE_CONT, pid, 0, by == SIGUSR1 ? by : 0) == 0);
    by = stopped_by(pid, &status);
    if (by < 0) break;
    if (by != SIGTRAP &&
        by != SIGUSR1) {  // where the child blocks the signal it comes to us once more
      fprintf(stderr, "%s: signal %d after %ld instructions\n", what, by, steps);
      kill(pid, SIGKILL);
      waitpid(pid, &status, 0);
      exit(1);
    }
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    fprintf(stderr, "%s: status %x after %ld instructions\n", what, status, steps);
    exit(1);
  }
}

int main(int argc, char** argv) {
  what = argv[1];
  long at = atol(argv[2]), stride = atol(argv[3]);
  plain_file = open_new("interrupted");
  handled_file = open_new("handled");
  const long all = instructions();
  for (; at < all - 1; at += stride) {
    ++child_number;
    interrupt_at(at);
  }
  printf("%ld %ld\n", child_number, all);
  return 0;
}
