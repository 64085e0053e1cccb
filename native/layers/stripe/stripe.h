// SPDX-License-Identifier: Apache-2.0
// Layer stripe: one file over several directories (README.md here).
#pragma once

#include "layers/machinery/stack/layer.h"

namespace weir::layers {

extern WEIR_OWN const stack::Kind kStripe;

}  // namespace weir::layers
