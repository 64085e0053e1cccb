// SPDX-License-Identifier: Apache-2.0
// From the model's type to integers of a packed field: the nearest number, halves to even.
#include <bit>
#include <cmath>
#include <limits>

#include "output/engine/convert.h"

namespace weir::output {

namespace {

inline uint32_t swapped(uint32_t v) { return __builtin_bswap32(v); }
inline uint16_t swapped(uint16_t v) { return __builtin_bswap16(v); }
inline uint8_t swapped(uint8_t v) { return v; }

template <size_t kBytes>
struct Unsigned;
template <>
struct Unsigned<4> {
  using Type = uint32_t;
};
template <>
struct Unsigned<2> {
  using Type = uint16_t;
};
template <>
struct Unsigned<1> {
  using Type = uint8_t;
};

// A value that would be packed to the fill value is a fault, too: readers take it for missing.
template <typename From, typename To, bool kSwap>
int64_t pack(const void* from, void* to, int64_t count, const Filling& filling, int64_t* first) {
  using Bits = typename Unsigned<sizeof(To)>::Type;
  const From* in = static_cast<const From*>(from);
  Bits* out = static_cast<Bits*>(to);
  const To fill = filling.value.as<To>();
  const From mark = filling.in_memory ? filling.in_memory->as<From>() : From{};
  const double scale = filling.packing->scale, offset = filling.packing->offset;
  int64_t faults = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double packed = std::nearbyint((static_cast<double>(in[i]) - offset) / scale);
    const bool held = packed >= std::numeric_limits<To>::min() && packed <= std::numeric_limits<To>::max() && packed != static_cast<double>(fill);
    const bool missing = filling.missing && (in[i] != in[i] || (filling.in_memory && in[i] == mark));
    if (!held && !missing && faults++ == 0) *first = i;
    const To value = held && !missing ? static_cast<To>(packed) : fill;
    const Bits bits = std::bit_cast<Bits>(value);
    out[i] = kSwap ? swapped(bits) : bits;
  }
  return faults;
}

template <typename From, bool kSwap>
Convert to_type(Type to) {
  switch (to) {
    case WEIR_INT32: return pack<From, int32_t, kSwap>;
    case WEIR_INT16: return pack<From, int16_t, kSwap>;
    case WEIR_INT8: return pack<From, int8_t, kSwap>;
    default: return nullptr;  // check_packing has refused it
  }
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

Convert packer(Type from, Type to, ByteOrder order) {
  const bool swap = order == ByteOrder::kBig && std::endian::native == std::endian::little;
  return swap ? from_type<true>(from, to) : from_type<false>(from, to);
}

}  // namespace weir::output
