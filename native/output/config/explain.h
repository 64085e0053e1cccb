// SPDX-License-Identifier: Apache-2.0
// A configuration in plain words, for `weir output check`.
#pragma once

#include <cstdint>
#include <string>

#include "output/config/config.h"

namespace weir::output {

// ranks: of the job, 0 when not known. What the program defines is not known here, and the text
// says so where it matters.
std::string explain(const Config& config, int64_t ranks);

// What is wrong with this number of ranks, or fine.
Status check_ranks(const Settings& settings, int64_t ranks);

}  // namespace weir::output
