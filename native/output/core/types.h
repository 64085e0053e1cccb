// SPDX-License-Identifier: Apache-2.0
// Element types of data in memory and in files.
#pragma once

#include <cstddef>
#include <cstdint>

#include <weir/field.h>

namespace weir::output {

using Type = weir_type;

constexpr size_t size_of(Type type) {
  switch (type) {
    case WEIR_FLOAT64:
    case WEIR_INT64: return 8;
    case WEIR_FLOAT32:
    case WEIR_INT32: return 4;
    case WEIR_INT16: return 2;
    case WEIR_INT8: return 1;
  }
  return 0;
}

enum class ByteOrder { kNative, kBig };

}  // namespace weir::output
