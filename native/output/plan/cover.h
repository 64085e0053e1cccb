// SPDX-License-Identifier: Apache-2.0
// Whether all ranks together have each point of a grid exactly once. Each rank looks at its own
// part of the indices, so no rank needs memory for all of them.
#pragma once

#include <string>

#include "output/plan/pieces.h"
#include "output/transport/team.h"

namespace weir::output {

// [collective] The same result on all ranks: fine, or WEIR_E_DECOMPOSITION with the number of
// missing and doubled indices, the first of each, and the ranks that claim the doubled one. `nx` is
// the length of the grid's rows, for the message.
Status check_cover(Team& team, const Pieces& mine, int64_t points, int64_t nx,
                   const std::string& what);

}  // namespace weir::output
