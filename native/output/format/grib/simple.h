// SPDX-License-Identifier: Apache-2.0
// Simple packing (WMO Manual on Codes, GRIB2, data representation template 5.0): a value is
// (R + X 2^E) / 10^D, with X of some bits. Here D is 0. R, E and X are computed as ecCodes computes
// them, so that the messages are the same to the byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "output/core/types.h"

namespace weir::output::grib {

// What a pass over the values finds.
struct Range {
  double low = 0, high = 0;  // of those that are numbers and not missing; infinite ones count
  int64_t missing = 0;       // NaN, or the missing value
};

struct Scale {
  double reference = 0;  // a float32
  int binary = 0;        // E
  int bits = 0;          // 0: all values are the reference
  bool valid = true;     // false: ecCodes must say what becomes of such values
};

Range range_of(Type type, const void* values, int64_t count, const double* missing);
// Bit i (from the most significant) is 1 where there is a value; `present` gets those, in a row.
void split_missing(Type type, const void* values, int64_t count, const double* missing,
                   std::vector<char>* bitmap, std::vector<char>* present);
// The least steps that need no more bits.
Scale scale_for(const Range& range, int bits);
// X of values [first, first + count).
void steps_of(Type type, const void* values, int64_t first, int64_t count, const Scale& scale,
              uint32_t* to);
// As many bits each, most significant first; `to` has room for (count * bits + 7) / 8 bytes.
void pack(Type type, const void* values, int64_t count, const Scale& scale, char* to);

}  // namespace weir::output::grib
