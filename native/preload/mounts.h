// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace weir::preload {

// Tells the trace what is mounted where: a name for each line of /proc/self/mountinfo, by the first
// process of the node's file alone.
void note_mounts();

}  // namespace weir::preload
