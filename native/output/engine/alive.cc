// SPDX-License-Identifier: Apache-2.0
#include "output/engine/alive.h"

namespace weir::output {

bool is_gone(World& world, int rank) {
  if (world.sites()[static_cast<size_t>(rank)].node !=
      world.sites()[static_cast<size_t>(world.rank())].node)
    return false;
  return !base::alive(world.sites()[static_cast<size_t>(rank)].process);
}

}  // namespace weir::output
