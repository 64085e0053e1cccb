// SPDX-License-Identifier: Apache-2.0
// Rounding of floating point numbers to some bits of their mantissa, the nearest, ties to even: the
// bits behind are zero, and compress to nothing. The error is at most half of the last bit that
// stays, relative to the value's power of two. Missing values, NaN and infinity stay as they are,
// and nothing becomes the missing value or infinite.
#pragma once

#include <optional>

#include "output/core/types.h"
#include "output/model/catalogue.h"

namespace weir::output {

constexpr int mantissa_bits(Type type) { return type == WEIR_FLOAT64 ? 52 : 23; }

// Values of a level or chunk, in rows of `row`: a pure function of them, whoever calls it. Returns
// the bits that stay; all of them where nothing is known to be superfluous (no information, other
// types). `to` may be `from`.
int round_values(const Rounding& rounding, Type type, const std::optional<Number>& missing,
                 const void* from, int64_t count, int64_t row, void* to);

// To so many bits.
void round_to_bits(int bits, Type type, const std::optional<Number>& missing, const void* from,
                   int64_t count, void* to);

}  // namespace weir::output
