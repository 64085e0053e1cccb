// SPDX-License-Identifier: Apache-2.0
// The directory of a node that nobody uses any more goes, so that jobs leave nothing in shared
// memory.
#pragma once

#include <string>

namespace weir::daemon {

// Removes the directory (of /dev/shm/weir.*) if no process but this one has its registry or
// anything else of it mapped, nothing is to be written, and nothing was reported. Processes that
// join wait meanwhile (node::map_registry).
bool remove_unused(const std::string& directory);

}  // namespace weir::daemon
