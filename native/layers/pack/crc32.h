// SPDX-License-Identifier: Apache-2.0
// CRC-32 as ZIP archives have it (polynomial 0x04c11db7, bits reflected; ITU-T V.42).
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace weir::layers::pack {

// Of `n` more bytes behind those that gave `crc`; 0 before the first. Threads: any. No allocation.
uint32_t crc32(uint32_t crc, const void* data, size_t n);

}  // namespace weir::layers::pack
