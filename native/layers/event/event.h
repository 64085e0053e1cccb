// SPDX-License-Identifier: Apache-2.0
// Layer event: records what passes it (README.md here).
#pragma once

#include "layers/machinery/stack/layer.h"

namespace weir::layers {

extern WEIR_OWN const stack::Kind kEvent;

}  // namespace weir::layers
