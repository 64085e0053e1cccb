// SPDX-License-Identifier: Apache-2.0
// Numbers of some bits each in a row, most significant first, as section 7 of GRIB has them.
#pragma once

#include <cstdint>

namespace weir::output::grib {

// `to` gets (count * bits + 7) / 8 bytes; 1 <= bits <= 32, each number is below 2^bits.
void store_bits(const uint32_t* in, int64_t count, int bits, char* to);

}  // namespace weir::output::grib
