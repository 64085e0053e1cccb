// SPDX-License-Identifier: Apache-2.0
// sendmsg and sendmmsg. They have no records: what a socket moves is not a file's. Looked at is
// only whether they pass descriptors: a file under layers leaves them then, and its position is
// unknown, as whoever has the other descriptor moves it. Memory that cannot be read is the kernel's
// to refuse.
#include <string.h>
#include <sys/socket.h>

#include "hook/descriptors.h"
#include "hook/observe.h"
#include "layers/machinery/stack/posix.h"
#include "layers/machinery/stack/table.h"

using namespace weir::hook;
namespace stack = weir::stack;

namespace {

constexpr unsigned kMostMessages = 1024;  // of one sendmmsg: the kernel sends no more

void pass(int fd) {
  share(fd);
  stack::leave(fd, stack::Reason::kForked);
}

// All descriptors of one control message's data.
void pass_all(const char* from, uint64_t bytes) {
  for (uint64_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
    int fd;
    memcpy(&fd, from + at, sizeof fd);
    pass(fd);
  }
}

// What the kernel takes for control messages; the rest it refuses.
void look_through(const char* control, uint64_t bytes) {
  uint64_t at = 0;
  while (at < bytes && bytes - at >= sizeof(cmsghdr)) {
    cmsghdr head;
    memcpy(&head, control + at, sizeof head);
    if (head.cmsg_len < sizeof head || head.cmsg_len > bytes - at) return;
    const bool passes = head.cmsg_level == SOL_SOCKET && head.cmsg_type == SCM_RIGHTS;
    if (passes) pass_all(control + at + CMSG_LEN(0), head.cmsg_len - CMSG_LEN(0));
    at += CMSG_ALIGN(head.cmsg_len);
  }
}

bool concerns_files() { return recording() || stack::active(); }

void look_at(const msghdr& message) {
  const void* const control = message.msg_control;
  const uint64_t bytes = message.msg_controllen;
  if (WEIR_LIKELY(bytes < sizeof(cmsghdr)) || !stack::readable(control, bytes)) return;
  look_through(static_cast<const char*>(control), bytes);
}

void before_sending(const msghdr* message) {
  if (concerns_files() && stack::readable(message, sizeof *message)) look_at(*message);
}

void before_sending(const mmsghdr* messages, unsigned count) {
  if (!concerns_files()) return;
  if (count > kMostMessages) count = kMostMessages;
  for (unsigned i = 0; i < count && stack::readable(messages + i, sizeof *messages); ++i) {
    look_at(messages[i].msg_hdr);
  }
}

}  // namespace

WEIR_HOOK(ssize_t, sendmsg, int socket, const msghdr* message, int flags) {
  before_sending(message);
  return WEIR_REAL(sendmsg)(socket, message, flags);
}

WEIR_HOOK(int, sendmmsg, int socket, mmsghdr* messages, unsigned count, int flags) {
  before_sending(messages, count);
  return WEIR_REAL(sendmmsg)(socket, messages, count, flags);
}
