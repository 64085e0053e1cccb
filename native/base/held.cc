// SPDX-License-Identifier: Apache-2.0
#include "base/syscall.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

namespace weir::base {

constinit uint32_t no_more_calls = 0;

WEIR_THREAD uint32_t signals_blocked;

constinit uint32_t descriptors_held = 0;

void wait_for_held() {
  constexpr int kPatience = 20000;  // a file system that hangs must not hang the program's close
  for (int i = 0; i < kPatience && any_held(); ++i) yield();
}

void say(int fd, const char* text, size_t n) {
  timespec at_once{0, 0};
  pollfd room{fd, POLLOUT, 0};
  if (system_call(SYS_ppoll, reinterpret_cast<long>(&room), 1, reinterpret_cast<long>(&at_once)) != 1) return;
  if ((room.revents & POLLOUT) == 0) return;
  const SignalsBlocked blocked;
  if (write_fd(fd, text, n) != -EPIPE) return;
  const uint64_t pipe = uint64_t{1} << (SIGPIPE - 1);
  system_call(SYS_rt_sigtimedwait, reinterpret_cast<long>(&pipe), 0, reinterpret_cast<long>(&at_once), sizeof pipe);
}

}  // namespace weir::base
