// SPDX-License-Identifier: Apache-2.0
#include "output/engine/alive.h"

#include "output/transport/process.h"

namespace weir::output {

bool is_gone(World& world, int rank) {
  if (world.sites()[static_cast<size_t>(rank)].node != world.sites()[static_cast<size_t>(world.rank())].node) return false;
  return process_is_gone(world.sites()[static_cast<size_t>(rank)].pid);
}

}  // namespace weir::output
