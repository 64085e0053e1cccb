// SPDX-License-Identifier: Apache-2.0
#include "layers/writeback/watch/messages.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace weir::daemon {

bool receive_message(int socket, writeback::Message* message, int* descriptor) {
  iovec piece{message, sizeof *message};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(ucred))];
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  *message = {};
  *descriptor = -1;
  const ssize_t n = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0) return false;
  ucred sender{};
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET) continue;
    if (c->cmsg_type == SCM_RIGHTS) memcpy(descriptor, CMSG_DATA(c), sizeof *descriptor);
    if (c->cmsg_type == SCM_CREDENTIALS) memcpy(&sender, CMSG_DATA(c), sizeof sender);
  }
  message->arena[sizeof message->arena - 1] = 0;
  if (n != sizeof *message || message->magic != writeback::kMessageMagic ||
      sender.uid != geteuid() || sender.pid != static_cast<pid_t>(message->pid))
    message->magic = 0;
  return true;
}

}  // namespace weir::daemon
