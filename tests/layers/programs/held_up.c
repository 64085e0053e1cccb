// SPDX-License-Identifier: Apache-2.0
// held_up WHAT FILE PIECES: one of two processes that write a file in turns, pieces of 700 bytes.
//   jumps    the even pieces; a timer's handler jumps out of whatever call it meets, which is then
//   made again cancels  the even pieces, each in a thread that is cancelled at any instruction, and
//   then again in one that is not writes   the even pieces, over and over until a byte comes on
//   standard input beside   the odd pieces, and reads them again
// The first three then wait for a byte on standard input and look at all pieces.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { kPiece = 700 };
static int fd, pieces;
static sigjmp_buf out;
static volatile sig_atomic_t within, jumps;

static void must(int fine, const char* what, long where) {
  if (fine) return;
  fprintf(stderr, "%s at %ld\n", what, where);
  fflush(stderr);
  _exit(9);
}
static void put(int i) {
  char data[kPiece];
  memset(data, 'a' + i % 23, sizeof data);
  must(pwrite(fd, data, sizeof data, (off_t)i * kPiece) == sizeof data, "pwrite", i);
}
static void check(int i) {
  char data[kPiece];
  must(pread(fd, data, sizeof data, (off_t)i * kPiece) == sizeof data, "pread", i);
  for (int k = 0; k < kPiece; ++k)
    must(data[k] == 'a' + i % 23, "another byte", (long)i * kPiece + k);
}
static void jump(int number) {
  (void)number;
  if (!within) return;
  within = 0;
  ++jumps;
  siglongjmp(out, 1);
}
static void* cancelled(void* piece) {
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
  for (;;) put((int)(long)piece);
  return NULL;
}
static void await_byte(void) {
  char byte;
  must(write(1, "ready\n", 6) == 6 && read(0, &byte, 1) == 1, "standard streams", 0);
}

int main(int count, char** arguments) {
  must(count == 4, "arguments", count);
  pieces = atoi(arguments[3]);
  fd = open(arguments[2], O_RDWR | O_CREAT, 0644);
  must(fd >= 0, "open", 0);
  const char* what = arguments[1];
  if (strcmp(what, "jumps") == 0) {
    signal(SIGALRM, jump);
    const struct itimerval often = {{0, 300}, {0, 300}};
    setitimer(ITIMER_REAL, &often, NULL);
    for (int round = 0; jumps < 50 && round < 100000; ++round) {
      for (volatile int i = 0; i < pieces; i += 2) {
        while (sigsetjmp(out, 1) != 0) {}
        within = 1;
        put(i);
        within = 0;
      }
    }
    const struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
  } else if (strcmp(what, "cancels") == 0) {
    for (int i = 0; i < pieces; i += 2) {
      pthread_t thread;
      must(pthread_create(&thread, NULL, cancelled, (void*)(long)i) == 0, "thread", i);
      usleep(i * 7 % 300);
      pthread_cancel(thread);
      pthread_join(thread, NULL);
      put(i);
    }
  } else if (strcmp(what, "writes") == 0) {
    must(write(1, "ready\n", 6) == 6, "standard output", 0);
    fcntl(0, F_SETFL, O_NONBLOCK);
    char byte;
    do {
      for (int i = 0; i < pieces; i += 2) put(i);
    } while (read(0, &byte, 1) != 1);
    for (int i = 0; i < pieces; ++i) check(i);
    return close(fd) != 0;
  } else {
    for (int i = 1; i < pieces; i += 2) put(i);
    for (int i = 1; i < pieces; i += 2) check(i);
    return close(fd) != 0;
  }
  await_byte();
  for (int i = 0; i < pieces; ++i) check(i);
  printf("%d\n", jumps);
  return close(fd) != 0;
}
