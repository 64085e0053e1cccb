// SPDX-License-Identifier: Apache-2.0
// The life of a rank that only writes.
#pragma once

#include <optional>

#include "output/engine/setup.h"

namespace weir::output {

// Returns when the model has finalized and all is written, or with the first error that this server
// met. *unended: what could not be ended yet.
Status serve(std::unique_ptr<World> world, const Settings& settings, const Topology& topology,
             std::optional<Unended>* unended);

}  // namespace weir::output
