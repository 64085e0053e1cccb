// SPDX-License-Identifier: Apache-2.0
// Layer delay: requests that take longer (README.md here).
#pragma once

#include "layers/machinery/stack/layer.h"

namespace weir::layers {

extern WEIR_OWN const stack::Kind kDelay;

}  // namespace weir::layers
