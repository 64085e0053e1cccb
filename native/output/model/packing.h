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

}  // namespace weir::output
