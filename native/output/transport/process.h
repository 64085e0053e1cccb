// SPDX-License-Identifier: Apache-2.0
// Other processes of this node, and the memory that is left for this one: what the system says of them.
#pragma once

#include <cstdint>

namespace weir::output {

// Whether a process of this node and name space is gone, or a zombie.
// Cost: a signal 0, and a read of /proc/PID/stat where the process is there.
bool process_is_gone(int pid);

// Bytes that this process can still take without somebody being killed for it: what the node has left, and what its control groups
// allow. INT64_MAX where the system does not say.
int64_t available_bytes();

}  // namespace weir::output
