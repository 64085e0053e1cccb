// SPDX-License-Identifier: Apache-2.0
// Processes whose end matters. By pidfd; where the kernel has none (before Linux 5.3) by looking at
// /proc now and then.
#pragma once

#include <map>
#include <vector>

#include <poll.h>

#include "layers/machinery/node/lock.h"

namespace weir::daemon {

class Watch {
 public:
  ~Watch();
  // False: it has ended already.
  bool add(node::Identity who);
  bool knows(node::Identity who) const { return watched_.count(key(who)) != 0; }
  bool empty() const { return watched_.empty(); }
  // Waits for `socket` to be readable or for somebody's end, at most so long. Whoever has ended is
  // no longer watched.
  std::vector<node::Identity> wait(int socket, int at_most_ms, bool* readable);

 private:
  static uint64_t key(node::Identity who) { return uint64_t{who.start} << 32 | who.pid; }
  std::map<uint64_t, int> watched_;  // pidfd, or -1
};

}  // namespace weir::daemon
