// SPDX-License-Identifier: Apache-2.0
// bufa:bytes:buffers[:direct=1][:always=1]: reads ahead and writes behind, through the process's I/O threads. See README.md here.
#pragma once

#include "layers/machinery/stack/layer.h"

namespace weir::layers {

extern const stack::Kind kBufa;

}  // namespace weir::layers
