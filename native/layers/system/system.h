// SPDX-License-Identifier: Apache-2.0
// The bottom of every stack: the kernel.
#pragma once

#include "layers/machinery/stack/layer.h"

namespace weir::layers {

extern const stack::Kind kSystem;

}  // namespace weir::layers
