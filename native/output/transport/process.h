// SPDX-License-Identifier: Apache-2.0
// The memory that is left for this process: what the system says of it.
#pragma once

#include <cstdint>

namespace weir::output {

// Bytes that this process can still take without somebody being killed for it: what the node has
// left, and what its control groups allow. INT64_MAX where the system does not say.
int64_t available_bytes();

}  // namespace weir::output
