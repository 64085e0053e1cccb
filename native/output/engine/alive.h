// SPDX-License-Identifier: Apache-2.0
// Whether the process of another rank is still there, as far as that can be seen: on the same node.
#pragma once

#include "output/transport/world.h"

namespace weir::output {

// True only when the process is certainly gone (also as a zombie that nobody has waited for).
// False for a rank of another node, and for one in another PID namespace. Cost: base::alive().
bool is_gone(World& world, int rank);

}  // namespace weir::output
