// SPDX-License-Identifier: Apache-2.0
// Which file lies behind a mapped address, for munmap and msync. Only the address that mmap returned is known, not the
// middle of a mapping; a full table forgets the newest.
#pragma once

#include <stdint.h>

namespace weir::hook {

void mapped(const void* at, uint32_t file);
// 0: no file is known to be mapped there. forget: it is being unmapped.
uint32_t mapped_file(const void* at, bool forget);

}  // namespace weir::hook
