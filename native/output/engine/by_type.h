// SPDX-License-Identifier: Apache-2.0
// The instance of a kernel of conversion for two types and a byte order, and what kernels have in
// common.
#pragma once

#include <bit>
#include <type_traits>

#include "output/engine/convert.h"

namespace weir::output {

template <typename T>
using Bits =
    std::conditional_t<sizeof(T) == 8, uint64_t,
                       std::conditional_t<sizeof(T) == 4, uint32_t,
                                          std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;

inline uint64_t swapped(uint64_t v) { return __builtin_bswap64(v); }
inline uint32_t swapped(uint32_t v) { return __builtin_bswap32(v); }
inline uint16_t swapped(uint16_t v) { return __builtin_bswap16(v); }
inline uint8_t swapped(uint8_t v) { return v; }

template <template <typename, typename, bool> class Kernel, typename From, bool kSwap>
Convert to_type(Type to) {
  switch (to) {
    case WEIR_FLOAT32: return Kernel<From, float, kSwap>::kRun;
    case WEIR_FLOAT64: return Kernel<From, double, kSwap>::kRun;
    case WEIR_INT32: return Kernel<From, int32_t, kSwap>::kRun;
    case WEIR_INT64: return Kernel<From, int64_t, kSwap>::kRun;
    case WEIR_INT16: return Kernel<From, int16_t, kSwap>::kRun;
    case WEIR_INT8: return Kernel<From, int8_t, kSwap>::kRun;
  }
  return nullptr;
}

template <template <typename, typename, bool> class Kernel, bool kSwap>
Convert from_type(Type from, Type to) {
  switch (from) {
    case WEIR_FLOAT32: return to_type<Kernel, float, kSwap>(to);
    case WEIR_FLOAT64: return to_type<Kernel, double, kSwap>(to);
    case WEIR_INT32: return to_type<Kernel, int32_t, kSwap>(to);
    case WEIR_INT64: return to_type<Kernel, int64_t, kSwap>(to);
    case WEIR_INT16: return to_type<Kernel, int16_t, kSwap>(to);
    case WEIR_INT8: return to_type<Kernel, int8_t, kSwap>(to);
  }
  return nullptr;
}

inline bool swaps(Type to, ByteOrder order) {
  return order == ByteOrder::kBig && std::endian::native == std::endian::little && size_of(to) > 1;
}

// Kernel<From, To, kSwap>::kRun; null where the kernel has none for these types.
template <template <typename, typename, bool> class Kernel>
Convert instance(Type from, Type to, ByteOrder order) {
  return swaps(to, order) ? from_type<Kernel, true>(from, to) : from_type<Kernel, false>(from, to);
}

}  // namespace weir::output
