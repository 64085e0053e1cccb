// SPDX-License-Identifier: Apache-2.0
// Layer short: transfers that move fewer bytes than asked for (README.md here).
#pragma once

#include "layers/machinery/stack/layer.h"

namespace weir::layers {

extern WEIR_OWN const stack::Kind kShort;

}  // namespace weir::layers
