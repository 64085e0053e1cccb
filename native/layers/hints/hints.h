// SPDX-License-Identifier: Apache-2.0
// Layer hints: how a file lies on Lustre, decided when it is made (README.md here).
#pragma once

#include "layers/machinery/stack/layer.h"

namespace weir::layers {

extern WEIR_OWN const stack::Kind kHints;

}  // namespace weir::layers
