// SPDX-License-Identifier: Apache-2.0
// Kernel AIO by libaio (default) or by syscall() (-DDIRECT): each kind of request, errors, blocks
// that nobody collects. Prints all results.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef DIRECT
static int of(long result) { return result < 0 ? -errno : (int)result; }
static int io_setup(int n, aio_context_t *c) { return of(syscall(SYS_io_setup, (long)n, c)); }
static int io_destroy(aio_context_t c) { return of(syscall(SYS_io_destroy, c)); }
static int io_submit(aio_context_t c, long n, struct iocb **list) {
  return of(syscall(SYS_io_submit, c, n, list));
}
static int io_getevents(aio_context_t c, long least, long most, struct io_event *to,
                        struct timespec *limit) {
  return of(syscall(SYS_io_getevents, c, least, most, to, limit));
}
#else
int io_setup(int n, aio_context_t *c);
int io_destroy(aio_context_t c);
int io_submit(aio_context_t c, long n, struct iocb **list);
int io_getevents(aio_context_t c, long least, long most, struct io_event *to,
                 struct timespec *limit);
#endif

static char text[8192], got[8192];
static struct iocb block(int what, int fd, void *data, uint64_t n, int64_t offset) {
  struct iocb made;
  memset(&made, 0, sizeof made);
  made.aio_lio_opcode = what, made.aio_fildes = fd, made.aio_buf = (uintptr_t)data,
  made.aio_nbytes = n, made.aio_offset = offset;
  return made;
}
static void collect(aio_context_t context, int n) {
  struct io_event events[8];
  const int done = io_getevents(context, n, 8, events, NULL);
  long sum = 0;
  for (int i = 0; i < done; ++i) sum += (long)events[i].res;
  printf("collected %d, results add up to %ld\n", done, sum);
}
static void one(aio_context_t context, struct iocb what) {
  struct iocb *list[] = {&what};
  printf("submitted %d\n", io_submit(context, 1, list));
  collect(context, 1);
}

int main(void) {
  memset(text, 'x', sizeof text);
  aio_context_t context = 0;
  printf("setup %d\n", io_setup(16, &context));
  const int fd = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600),
            other = open("other", O_RDWR | O_CREAT | O_TRUNC, 0600);
  printf("before %zd\n", write(fd, "plain", 5));  // which a layer may hold back
  struct iovec two[] = {{text, 100}, {text, 200}};
  struct iocb a = block(IOCB_CMD_PWRITE, fd, text, 4096, 3),
              b = block(IOCB_CMD_PWRITEV, other, two, 2, 8192);
  struct iocb *list[] = {&a, &b};
  printf("submitted %d\n", io_submit(context, 2, list));
  collect(context, 2);
  one(context, block(IOCB_CMD_PREAD, fd, got, 8192, 99));      // short
  one(context, block(IOCB_CMD_PREAD, fd, got, 10, 0));
  printf("read %.10s\n", got);
  struct iovec into[] = {{got, 50}, {got + 50, 50}};
  one(context, block(IOCB_CMD_PREADV, other, into, 2, 8200));
  one(context, block(IOCB_CMD_FSYNC, fd, NULL, 0, 0));
  one(context, block(IOCB_CMD_FDSYNC, fd, NULL, 0, 0));
  one(context,
      block(IOCB_CMD_PWRITE, fd, (void *)8, 512, 0));  // EFAULT, at submission or in the result
  // The first is taken, the second is refused.
  struct iocb good = block(IOCB_CMD_PWRITE, fd, text, 7, 5000),
              bad = block(IOCB_CMD_PWRITE, 999, text, 9, 5000);
  struct iocb *both[] = {&good, &bad}, *wrong[] = {&bad}, *none[] = {NULL};
  printf("submitted %d\n", io_submit(context, 2, both));
  collect(context, 1);
  printf("a bad descriptor %d\n", io_submit(context, 1, wrong));
  printf("no block %d\n", io_submit(context, 1, none));
  printf("no list %d\n", io_submit(context, 1, (void *)16));
  printf("nothing %d\n", io_submit(context, 0, list));
  printf("no context %d\n", io_submit(12345, 1, both));
  // Nobody collects these; the first block is used twice.
  struct iocb again = block(IOCB_CMD_PWRITE, fd, text, 11, 6000);
  struct iocb *uncollected[] = {&again};
  printf("submitted %d\n", io_submit(context, 1, uncollected));
  usleep(20000);
  again = block(IOCB_CMD_PWRITE, fd, text, 12, 6100);
  printf("submitted %d\n", io_submit(context, 1, uncollected));
  fflush(stdout);
  if (fork() == 0) _exit(0);
  wait(NULL);
  printf("destroyed %d\n", io_destroy(context));
  printf("%zd %zd\n", pread(fd, got, sizeof got, 0), lseek(fd, 0, SEEK_CUR));
  return 0;
}
