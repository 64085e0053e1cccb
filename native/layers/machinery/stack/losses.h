// SPDX-License-Identifier: Apache-2.0
// Bytes that layers had accepted and that are lost, by file, until the process reports them.
#pragma once

#include <stdint.h>

#include "layers/machinery/stack/file.h"

namespace weir::stack {

// Any thread. No allocation; the first call of the process makes a copy of standard error.
void count_loss(const File* f, int error, uint64_t bytes);

}  // namespace weir::stack
