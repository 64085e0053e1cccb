// SPDX-License-Identifier: Apache-2.0
// Layer error: requests that fail as asked for (README.md here).
#pragma once

#include "layers/machinery/stack/layer.h"

namespace weir::layers {

extern WEIR_OWN const stack::Kind kError;

}  // namespace weir::layers
