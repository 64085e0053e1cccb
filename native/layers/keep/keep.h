// SPDX-License-Identifier: Apache-2.0
// keep[:files=256][:bytes=16777216][:valid_ms=1000]: files that are opened, appended to and closed again and again, or only looked
// into, stay open below the program (layers/machinery/stack/park.h), and what is appended is written in larger pieces. See README.md here.
#pragma once

#include "layers/machinery/stack/layer.h"

namespace weir::layers {

extern const stack::Kind kKeep;

}  // namespace weir::layers
