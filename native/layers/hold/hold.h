// SPDX-License-Identifier: Apache-2.0
// Layer hold, for tests of what stands above layers: the smallest thing that holds bytes. It is in
// no library that is installed.
#pragma once

#include "layers/machinery/stack/layer.h"

namespace weir::layers {

extern const stack::Kind kHold;

}  // namespace weir::layers
