/* SPDX-License-Identifier: Apache-2.0 */
/* A write is executed instruction by instruction and left by siglongjmp, after FIRST, FIRST +
 * STRIDE, ... of them, each time in a process of its own. Signals that are blocked are not
 * delivered, so a jump waits for the end of a part that blocks them. HOW: 1 a child is forked
 * behind the jump, 2 whole blocks are written over what the write may have accepted. The file must
 * have what was written last. Status 0: it always had; the last line of output is the number of
 * instructions. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { kBlock = 4096, kPart = 100, kSigprocmask = 14 };
static sigjmp_buf out;
static volatile long left;
static volatile int are_blocked;
static unsigned long mask;

/* The program's mask without SIGTRAP: a trap that is blocked would be the end. */
static void follow_mask(greg_t *registers) {
  const unsigned char *next = (const unsigned char *)registers[REG_RIP];
  if (next[0] != 0x0f || next[1] != 0x05 || registers[REG_RAX] != kSigprocmask ||
      registers[REG_RSI] == 0)
    return;
  mask = *(unsigned long *)registers[REG_RSI];
  are_blocked = registers[REG_RDI] != SIG_UNBLOCK && (mask >> (SIGALRM - 1) & 1);
  if (registers[REG_RDI] != SIG_UNBLOCK) mask &= ~(1ul << (SIGTRAP - 1));
  registers[REG_RSI] = (greg_t)&mask;
}

static void step(int number, siginfo_t *about, void *context) {
  (void)number, (void)about;
  follow_mask(((ucontext_t *)context)->uc_mcontext.gregs);
  if (--left <= 0 && !are_blocked) siglongjmp(out, 1);
}

static void stepping(int on) {
  if (on) __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
  else __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}

static int has(const char *bytes, long count, char wanted) {
  for (long i = 0; i < count; ++i) {
    if (bytes[i] != wanted) return 0;
  }
  return 1;
}

/* 0, 9 where the write ended before the jump, or what went wrong. */
static int one(long at, int how) {
  static char bytes[kBlock];
  volatile int ended = 0;
  unlink("data"); /* what is left of it must not be found by the next one */
  int fd = open("data", O_CREAT | O_RDWR | O_TRUNC, 0644);
  struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_NODEFER | SA_SIGINFO};
  sigaction(SIGTRAP, &action, 0);
  memset(bytes, 'j', sizeof bytes);
  if (pwrite(fd, bytes, kPart, 2 * kBlock) != kPart) return 1;
  if (sigsetjmp(out, 1) == 0) {
    left = at;
    stepping(1);
    const long done = pwrite(fd, bytes, kPart, 0);
    stepping(0);
    if (done != kPart) return 2;
    ended = 1;
  }
  if (how & 1) {
    if (fork() == 0) _exit(0);
    wait(0);
  }
  memset(bytes, 'b', sizeof bytes);
  if (how & 2 && pwrite(fd, bytes, kBlock, 0) != kBlock) return 3;
  if (fsync(fd) != 0 || close(fd) != 0) return 4;
  fd = open("data", O_RDONLY);
  const long there = pread(fd, bytes, kBlock, 0);
  close(fd);
  if (how & 2) return there == kBlock && has(bytes, kBlock, 'b') ? ended * 9 : 5;
  return !ended || (there >= kPart && has(bytes, kPart, 'j')) ? ended * 9 : 6;
}

int main(int count, char **arguments) {
  if (count != 5) return 2;
  const long first = atol(arguments[1]), stride = atol(arguments[2]), last = atol(arguments[3]);
  const int how = atoi(arguments[4]);
  for (long at = first; at <= last; at += stride) {
    const pid_t child = fork();
    if (child == 0) _exit(one(at, how));
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 9) {
      printf("%ld\n", at);
      return 0;
    }
    if (status != 0) {
      printf("after %ld instructions: status %x\n", at, status);
      return 1;
    }
  }
  return 0;
}
