// SPDX-License-Identifier: Apache-2.0
// Requests by liburing: plain, vectors, a registered file, a sync, at the position.
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct io_uring ring;
static void collect(int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) {
    struct io_uring_cqe *done;
    if (io_uring_wait_cqe(&ring, &done) != 0) exit(2);
    sum += done->res;
    io_uring_cqe_seen(&ring, done);
  }
  printf("results add up to %d\n", sum);
}

int main(void) {
  static char text[8192], got[8192];
  memset(text, 'x', sizeof text);
  const int early = open("early", O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (write(early, "under a layer", 13) != 13) return 3;
  const int result = io_uring_queue_init(8, &ring, 0);
  if (result < 0) return printf("no io_uring: %d\n", result), 77;
  const int fd = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600),
            other = open("other", O_RDWR | O_CREAT | O_TRUNC, 0600);
  for (int round = 0; round < 5; ++round) {  // more than the ring has entries
    for (int i = 0; i < 4; ++i)
      io_uring_prep_write(io_uring_get_sqe(&ring), fd, text, 1000 + i, 4096 * (4 * round + i));
    printf("submitted %d\n", io_uring_submit(&ring));
    collect(4);
  }
  struct iovec two[] = {{text, 100}, {text, 200}};
  io_uring_prep_writev(io_uring_get_sqe(&ring), other, two, 2, 0);
  printf("submitted %d\n", io_uring_submit_and_wait(&ring, 1));
  collect(1);
  io_uring_prep_fsync(io_uring_get_sqe(&ring), other, 0);
  io_uring_prep_read(io_uring_get_sqe(&ring), early, got, 13, 0);
  printf("submitted %d\n", io_uring_submit_and_wait(&ring, 2));
  collect(2);
  printf("read %.13s\n", got);
  const int files[] = {other};
  if (io_uring_register_files(&ring, files, 1) == 0) {
    struct io_uring_sqe *one = io_uring_get_sqe(&ring);
    io_uring_prep_read(one, 0, got, 64, 10);
    one->flags |= IOSQE_FIXED_FILE;
    printf("submitted %d\n", io_uring_submit(&ring));
    collect(1);
  }
  io_uring_queue_exit(&ring);
  return 0;
}
