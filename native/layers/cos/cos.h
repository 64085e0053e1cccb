// SPDX-License-Identifier: Apache-2.0
// Layer cos: files blocked as on Cray, through one buffer (README.md here).
#pragma once

#include "layers/machinery/stack/layer.h"

namespace weir::layers {

extern WEIR_OWN const stack::Kind kCos;

}  // namespace weir::layers
