// SPDX-License-Identifier: Apache-2.0
// From the model's type to the file's, and to the file's byte order, in the same copy that moves
// the data to their place.
#pragma once

#include <optional>

#include "output/core/number.h"
#include "output/core/types.h"
#include "output/model/packing.h"

namespace weir::output {

// What is written for a value that the file's type cannot hold: the missing value, else what netCDF
// fills with (NC_FILL_SHORT, ...).
struct Filling {
  Number value;
  // The field has a missing value: NaN, where the type has none, is that and no fault.
  bool missing = false;
  std::optional<Packing> packing;   // for a packer
  // Of a packed field: what is missing has this value, where it has one of its own.
  std::optional<Number> in_memory;

  static Filling of(const std::optional<Number>& missing, Type file_type);
};

// Values that the file's type cannot hold: above or below its range, or NaN in integers.
struct Faults {
  int64_t count = 0, first = -1;  // how many; the lowest place
  double value = 0;               // there

  void add(int64_t more, int64_t at, double is) {
    if (more > 0 && (first < 0 || at < first)) first = at, value = is;
    count += more;
  }
};

// `count` elements. Returns how many were faults, which have become `filling`; *first is then the
// index of the first of them.
using Convert = int64_t (*)(const void* from, void* to, int64_t count, const Filling& filling,
                            int64_t* first);

// From the native order.
Convert converter(Type from, Type to, ByteOrder order);
// The same for packed fields, to 8, 16 or 32 bits.
Convert packer(Type from, Type to, ByteOrder order);

// An element of an array of the type.
double element_at(Type type, const void* values, int64_t index);

// Whether values of one type may be faults in the other.
bool may_lose(Type from, Type to);

}  // namespace weir::output
