// SPDX-License-Identifier: Apache-2.0
// Packed fields (CF-1.11, section 8.1): what is in the file, times scale_factor, plus add_offset,
// is the value.
#pragma once

#include <optional>

#include "output/model/catalogue.h"

namespace weir::output {

struct Packing {
  double scale = 1, offset = 0;
};

// Of a field with one of the two attributes, or both.
inline std::optional<Packing> packing_of(const Attributes& attributes) {
  std::optional<Packing> packing;
  for (const Attribute& a : attributes) {
    const double* number = std::get_if<double>(&a.value);
    if (number == nullptr || (a.name != "scale_factor" && a.name != "add_offset")) continue;
    if (!packing) packing.emplace();
    (a.name == "scale_factor" ? packing->scale : packing->offset) = *number;
  }
  return packing;
}

// What netCDF fills with (NC_FILL_SHORT, ...). The _FillValue of packed fields.
inline Number default_fill(Type type) {
  switch (type) {
    case WEIR_FLOAT32:
    case WEIR_FLOAT64: return 9.9692099683868690e+36;
    case WEIR_INT32: return -2147483647.0;
    case WEIR_INT64: return Number::exactly(-9223372036854775806);
    case WEIR_INT16: return -32767.0;
    case WEIR_INT8: return -127.0;
  }
  return {};
}

// The numbers that stand in a file for a missing value, as they are stored. Plain bytes: they go
// between ranks and from modules.
struct Fills {
  Number values[2] = {};
  int count = 0;

  void add(const Number& value) {
    if (count < 2) values[count++] = value;
  }
  // Exact in 64-bit integers, too.
  template <typename T>
  bool has(T value) const {
    for (int i = 0; i < count; ++i) {
      if constexpr (std::is_integral_v<T>) {
        if (values[i].is_whole && value == values[i].whole) return true;
      } else {
        const double real = values[i].real;
        if (value == real || (value != value && real != real)) return true;
      }
    }
    return false;
  }
};

}  // namespace weir::output
