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

constexpr const char* name_of(Type type) {
  switch (type) {
    case WEIR_FLOAT32: return "float32";
    case WEIR_FLOAT64: return "float64";
    case WEIR_INT32: return "int32";
    case WEIR_INT64: return "int64";
    case WEIR_INT16: return "int16";
    case WEIR_INT8: return "int8";
  }
  return "";
}

enum class ByteOrder { kNative, kBig };

}  // namespace weir::output
