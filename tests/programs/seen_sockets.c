// SPDX-License-Identifier: Apache-2.0
// Messages that pass descriptors: posix/passing.cc. They have no records; of the file that another
// process has from then on, the position is unknown.
#include "seen.h"

#include <sys/socket.h>

static union {
  char room[CMSG_SPACE(sizeof(int))];
  struct cmsghdr aligned;
} control;
static char byte = 'm';
static struct iovec piece = {&byte, 1};

// A message with the descriptor, without one if it is negative.
static struct msghdr message_with(int fd) {
  struct msghdr m = {.msg_iov = &piece, .msg_iovlen = 1};
  if (fd < 0) return m;
  m.msg_control = control.room;
  m.msg_controllen = sizeof control.room;
  struct cmsghdr *head = CMSG_FIRSTHDR(&m);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(head), &fd, sizeof fd);
  return m;
}

static int receive(int from) {
  struct msghdr m = message_with(-1);
  m.msg_control = control.room;
  m.msg_controllen = sizeof control.room;
  int fd = -1;
  if (recvmsg(from, &m, 0) != 1 || CMSG_FIRSTHDR(&m) == NULL) return -1;
  memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
  return fd;
}

// Reads after the message: of the file's first bytes and, by the other descriptor, of the next.
#define PASSING(symbol, expected, send)                  \
  SEEN(symbol, expected) {                               \
    int pair[2];                                         \
    char text[8];                                        \
    tell(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));     \
    const int fd = open(file, O_RDONLY);                 \
    tell(read(fd, text, 3));                             \
    struct msghdr none = message_with(-1);               \
    tell(sendmsg(pair[0], &none, 0));                    \
    tell(recv(pair[1], text, 1, 0));                     \
    struct msghdr m = message_with(fd);                  \
    tell(send);                                          \
    const int got = receive(pair[1]);                    \
    tell(read(got, text, 4));                            \
    tell(read(fd, text, 5));                             \
    close(got), close(fd);                               \
  }
PASSING(sendmsg, "open; read 3 @0; read 4; read 5; close; close", CALL(sendmsg)(pair[0], &m, 0))

static struct mmsghdr several[2];
PASSING(sendmmsg, "open; read 3 @0; read 4; read 5; close; close",
        (several[0].msg_hdr = m, CALL(sendmmsg)(pair[0], several, 1, 0)))

ALSO(sendmsg, bad, "") {
  tell(CALL(sendmsg)(-1, (struct msghdr *)8, 0));
  struct msghdr m = message_with(-1);
  m.msg_control = (void *)8;
  m.msg_controllen = 64;
  int pair[2];
  tell(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
  tell(CALL(sendmsg)(pair[0], &m, 0));
  several[0].msg_hdr = m;
  tell(CALL(sendmmsg)(pair[0], several, 1, 0));
  tell(CALL(sendmmsg)(pair[0], (struct mmsghdr *)8, 2, 0));
}
