// SPDX-License-Identifier: Apache-2.0
// Files of which this process has mappings. A mapping outlives its descriptor, and what a layer
// holds never shows in it: such files stay the kernel's until they are unmapped.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

namespace weir::stack {

extern WEIR_OWN uint32_t mappings;  // that are known

// After mmap of a file that some rule is about: known or once under layers. The first 256 at a time
// are known. writes: what is stored in it reaches the file. A lease tells the node's other ranks,
// until it is unmapped.
void remember_mapping(uint64_t device, uint64_t inode, bool writes, const void* at, size_t bytes);
// Before munmap: a mapping that goes as a whole.
void forget_mapping(const void* at, size_t bytes);
bool is_mapped(uint64_t device, uint64_t inode);

}  // namespace weir::stack
