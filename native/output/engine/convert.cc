// SPDX-License-Identifier: Apache-2.0
#include "output/engine/convert.h"

#include <string.h>

#include <bit>
#include <limits>
#include <type_traits>

namespace weir::output {

namespace {

// The same loop for processors with and without AVX2, chosen when the library is loaded.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define WEIR_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define WEIR_CLONES
#endif

template <typename T>
using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;

inline uint64_t swapped(uint64_t v) { return __builtin_bswap64(v); }
inline uint32_t swapped(uint32_t v) { return __builtin_bswap32(v); }
inline uint16_t swapped(uint16_t v) { return __builtin_bswap16(v); }
inline uint8_t swapped(uint8_t v) { return v; }

template <typename From, typename To>
inline To cast(From v, double fill) {
  if constexpr (std::is_integral_v<To> && !std::is_same_v<From, To>) {
    using Limits = std::numeric_limits<To>;
    if constexpr (std::is_floating_point_v<From>) {
      if (v != v) return static_cast<To>(fill);
      // The greatest To may not be a From: at its power of two and above it is the end.
      if (v >= -static_cast<From>(Limits::min())) return Limits::max();
      return v < static_cast<From>(Limits::min()) ? Limits::min() : static_cast<To>(v);
    } else {
      const int64_t wide = v;
      return wide < static_cast<int64_t>(Limits::min()) ? Limits::min() : wide > static_cast<int64_t>(Limits::max()) ? Limits::max() : static_cast<To>(wide);
    }
  }
  return static_cast<To>(v);
}

template <typename From, typename To, bool kSwap>
WEIR_CLONES void convert(const void* from, void* to, int64_t count, double fill) {
  const From* in = static_cast<const From*>(from);
  Bits<To>* out = static_cast<Bits<To>*>(to);
  for (int64_t i = 0; i < count; ++i) {
    const Bits<To> bits = std::bit_cast<Bits<To>>(cast<From, To>(in[i], fill));
    out[i] = kSwap ? swapped(bits) : bits;
  }
}

template <size_t kBytes>
void copy(const void* from, void* to, int64_t count, double) {
  memcpy(to, from, static_cast<size_t>(count) * kBytes);
}

template <typename From, bool kSwap>
Convert to_type(Type to) {
  switch (to) {
    case WEIR_FLOAT32: return convert<From, float, kSwap>;
    case WEIR_FLOAT64: return convert<From, double, kSwap>;
    case WEIR_INT32: return convert<From, int32_t, kSwap>;
    case WEIR_INT64: return convert<From, int64_t, kSwap>;
    case WEIR_INT16: return convert<From, int16_t, kSwap>;
    case WEIR_INT8: return convert<From, int8_t, kSwap>;
  }
  return nullptr;
}

template <bool kSwap>
Convert from_type(Type from, Type to) {
  switch (from) {
    case WEIR_FLOAT32: return to_type<float, kSwap>(to);
    case WEIR_FLOAT64: return to_type<double, kSwap>(to);
    case WEIR_INT32: return to_type<int32_t, kSwap>(to);
    case WEIR_INT64: return to_type<int64_t, kSwap>(to);
    case WEIR_INT16: return to_type<int16_t, kSwap>(to);
    case WEIR_INT8: return to_type<int8_t, kSwap>(to);
  }
  return nullptr;
}

}  // namespace

Convert converter(Type from, Type to, ByteOrder order) {
  const bool swap = order == ByteOrder::kBig && std::endian::native == std::endian::little && size_of(to) > 1;
  if (swap) return from_type<true>(from, to);
  if (from != to) return from_type<false>(from, to);
  switch (size_of(to)) {
    case 8: return copy<8>;
    case 4: return copy<4>;
    case 2: return copy<2>;
    default: return copy<1>;
  }
}

}  // namespace weir::output
