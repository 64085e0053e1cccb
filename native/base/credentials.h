// SPDX-License-Identifier: Apache-2.0
// The users and groups that the calling thread acts as.
#pragma once

#include <stdint.h>

#include "base/syscall.h"

namespace weir::base {

struct Credentials {
  uint32_t users[3], groups[3];  // real, effective, saved
  bool operator==(const Credentials&) const = default;
};

// Asked of the kernel each time: threads may differ, and a program may change them by a call that
// nobody sees. Threads: any, and signal handlers. All zeros where no system call may be made. Cost:
// two of them.
inline Credentials credentials() {
  Credentials is{};
  const auto at = [](uint32_t& id) { return reinterpret_cast<long>(&id); };
  if (sealed()) return is;
  system_call(SYS_getresuid, at(is.users[0]), at(is.users[1]), at(is.users[2]));
  system_call(SYS_getresgid, at(is.groups[0]), at(is.groups[1]), at(is.groups[2]));
  return is;
}

// Counts calls by which the process or a thread may come to act as another, as hooks see them; for
// who keeps for a thread what the kernel has said of it. Before and after each.
extern WEIR_OWN uint32_t credential_changes;
inline void credentials_change() { base::fetch_add(&credential_changes, 1u); }

// Effective user and group of the thread, by the calls that hooks see: a system call that the
// program makes by an instruction of its own is not among them. may_keep: false where another
// process has this memory (a child of vfork). Cost: two loads, and two system calls after a change.
struct Acting {
  uint32_t user, group;
};
Acting acting(bool may_keep);

}  // namespace weir::base
