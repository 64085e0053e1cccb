// SPDX-License-Identifier: Apache-2.0
// Layer gather: small writes of a node's ranks become whole stripes (README.md here).
#pragma once

#include "layers/machinery/stack/layer.h"

namespace weir::layers {

extern const stack::Kind kGather;

}  // namespace weir::layers
