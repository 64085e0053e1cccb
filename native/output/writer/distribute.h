// SPDX-License-Identifier: Apache-2.0
// Which collector has which variable.
#pragma once

#include <cstdint>
#include <vector>

namespace weir::output::writer {

// The collector of each variable, from its weight (bytes or points of a step): the heaviest first,
// each to the collector that has least; of equals the first. The same on all ranks. The heaviest
// collector has at most 4/3 of the best distribution (R. L. Graham, 1969).
std::vector<int> distribute(const std::vector<int64_t>& weights, int collectors);

}  // namespace weir::output::writer
