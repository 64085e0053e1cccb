// SPDX-License-Identifier: Apache-2.0
// Layer global: one cache for all ranks that have the file open (README.md here).
#pragma once

#include "layers/machinery/stack/layer.h"

namespace weir::layers {

extern const stack::Kind kGlobal;

}  // namespace weir::layers
