// SPDX-License-Identifier: Apache-2.0
// The users and groups that the calling thread acts as, asked of the kernel each time: threads may
// differ, and a program may change them by a call that nobody sees.
#pragma once

#include <stdint.h>

#include "base/syscall.h"

namespace weir::base {

struct Credentials {
  uint32_t users[3], groups[3];  // real, effective, saved
  bool operator==(const Credentials&) const = default;
};

// Threads: any, and signal handlers. All zeros where no system call may be made. Cost: two of them.
inline Credentials credentials() {
  Credentials is{};
  const auto at = [](uint32_t& id) { return reinterpret_cast<long>(&id); };
  if (sealed()) return is;
  system_call(SYS_getresuid, at(is.users[0]), at(is.users[1]), at(is.users[2]));
  system_call(SYS_getresgid, at(is.groups[0]), at(is.groups[1]), at(is.groups[2]));
  return is;
}

}  // namespace weir::base
