// SPDX-License-Identifier: Apache-2.0
// Asynchronous I/O: posix/aio.cc. The 64-bit forms take the same structure under another name.
#include "seen.h"

#include <aio.h>

static char text[64];

static struct aiocb request(int fd, int what, size_t n, off_t offset) {
  struct aiocb block;
  memset(&block, 0, sizeof block);
  block.aio_fildes = fd;
  block.aio_lio_opcode = what;
  block.aio_buf = text;
  block.aio_nbytes = n;
  block.aio_offset = offset;
  block.aio_sigevent.sigev_notify = SIGEV_NONE;
  return block;
}
static void await(struct aiocb *block) {
  while (aio_error(block) == EINPROGRESS) usleep(100);
}

// One request to a new descriptor, waited for without a call that is recorded.
#define SUBMITTING(symbol, expected, ...)                       \
  SEEN(symbol, expected) {                                      \
    const int fd = open(file, O_RDWR);                          \
    struct aiocb block = request(fd, LIO_NOP, 10, 6);           \
    tell(CALL(symbol)(__VA_ARGS__));                            \
    await(&block);                                              \
    tell(aio_return(&block));                                   \
    close(fd);                                                  \
  }
SUBMITTING(aio_read, "open; aio_read 10 @6; aio_return; close", &block)
SUBMITTING(aio_read64, "open; aio_read 10 @6; aio_return; close", (struct aiocb64 *)&block)
SUBMITTING(aio_write, "open; aio_write 10 @6; aio_return; close", &block)
SUBMITTING(aio_write64, "open; aio_write 10 @6; aio_return; close", (struct aiocb64 *)&block)
SUBMITTING(aio_fsync, "open; aio_fsync; aio_return; close", O_SYNC, &block)
SUBMITTING(aio_fsync64, "open; aio_fsync; aio_return; close", O_DSYNC, (struct aiocb64 *)&block)
ALSO(aio_fsync, refused, "open; aio_fsync error=EINVAL; close") {
  const int fd = open(file, O_RDWR);
  struct aiocb block = request(fd, LIO_NOP, 10, 6);
  tell(CALL(aio_fsync)(12345, &block));
  tell(CALL(aio_fsync)(12345, NULL));
  close(fd);
}

#define COLLECTING(symbol, type)                                            \
  SEEN(symbol, "open; aio_read 10 @6; aio_return; close") {                 \
    const int fd = open(file, O_RDONLY);                                    \
    struct aiocb block = request(fd, LIO_NOP, 10, 6);                       \
    aio_read(&block);                                                       \
    await(&block);                                                          \
    tell(CALL(symbol)((struct type *)&block));                              \
    say("  %.10s", text);                                                   \
    close(fd);                                                              \
  }
COLLECTING(aio_return, aiocb)
COLLECTING(aio_return64, aiocb64)

#define SUSPENDING(symbol, type)                                                    \
  SEEN(symbol, "open; aio_read 10 @6; aio_suspend on=-; aio_return; close") {       \
    const int fd = open(file, O_RDONLY);                                            \
    struct aiocb block = request(fd, LIO_NOP, 10, 6);                               \
    aio_read(&block);                                                               \
    const struct type *list[1] = {(struct type *)&block};                           \
    tell(CALL(symbol)(list, 1, NULL));                                              \
    await(&block);                                                                  \
    tell(aio_return(&block));                                                       \
    close(fd);                                                                      \
  }
SUSPENDING(aio_suspend, aiocb)
SUSPENDING(aio_suspend64, aiocb64)

#define LISTED(symbol, type)                                                                     \
  SEEN(symbol,                                                                                   \
       "open; lio_read 5 @0 below nested; lio_write 4 @11 below nested; lio_read 5 @20 short "   \
       "below nested;"                                                                           \
       " lio_listio on=-; close") {                                                              \
    const int fd = open(file, O_RDWR);                                                           \
    struct aiocb in = request(fd, LIO_READ, 5, 0), out = request(fd, LIO_WRITE, 4, 11);          \
    struct aiocb none = request(fd, LIO_NOP, 9, 0), end = request(fd, LIO_READ, 10, 20);         \
    struct type *list[5] = {(struct type *)&in, NULL, (struct type *)&none, (struct type *)&out, \
                            (struct type *)&end};                                                \
    tell(CALL(symbol)(LIO_WAIT, list, 5, NULL));                                                 \
    tell(in.__return_value + out.__return_value + end.__return_value);                           \
    close(fd);                                                                                   \
  }
LISTED(lio_listio, aiocb)
LISTED(lio_listio64, aiocb64)
ALSO(lio_listio, nowait, "open; lio_read 5 @0 below nested; lio_listio on=-; close") {
  const int fd = open(file, O_RDONLY);
  struct aiocb in = request(fd, LIO_READ, 5, 0), *list[1] = {&in};
  tell(CALL(lio_listio)(LIO_NOWAIT, list, 1, NULL));
  await(&in);
  close(fd);
}
ALSO(lio_listio, refused,
     "open; lio_read 5 @0 below nested; lio_write 4 @0 error=EBADF below nested; lio_listio on=- "
     "error=EIO; close") {
  const int fd = open(file, O_RDONLY);
  struct aiocb in = request(fd, LIO_READ, 5, 0), out = request(fd, LIO_WRITE, 4, 0),
               *list[2] = {&in, &out};
  tell(CALL(lio_listio)(LIO_WAIT, list, 2, NULL));
  close(fd);
}
ALSO(lio_listio, mode, "lio_listio on=- error=EINVAL") {
  tell(CALL(lio_listio)(17, NULL, 3, NULL));
}
