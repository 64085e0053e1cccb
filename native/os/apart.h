// SPDX-License-Identifier: Apache-2.0
// Work that must not show in the program's table of descriptors.
#pragma once

#include <stddef.h>

#include "base/compiler.h"

namespace weir::os {

// As read_file(). In a thread of weir's own the file is read with a copy of the table of descriptors: a program's open() in
// another thread would otherwise get the next number. Not for files below /proc/self.
WEIR_COLD long read_file_apart(const char* path, char* to, size_t size);

}  // namespace weir::os
