// SPDX-License-Identifier: Apache-2.0
// The life of a rank that only writes.
#pragma once

#include "output/engine/topology.h"

namespace weir::output {

// Returns when the model has finalized and all is written, or with the first error that this server
// met.
Status serve(World& world, const Settings& settings, const Topology& topology);

}  // namespace weir::output
