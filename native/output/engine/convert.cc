// SPDX-License-Identifier: Apache-2.0
#include "output/engine/by_type.h"

#include <string.h>

#include <cmath>
#include <limits>

namespace weir::output {

namespace {

// The same loop for processors with and without AVX2, chosen when the library is loaded.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define WEIR_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define WEIR_CLONES
#endif

// Whether To has room for every From.
template <typename From, typename To>
constexpr bool always_holds() {
  if (std::is_floating_point_v<To>) return std::is_integral_v<From> || sizeof(To) >= sizeof(From);
  return std::is_integral_v<From> && sizeof(To) >= sizeof(From);
}

template <typename From, typename To>
inline bool holds(From v) {
  using Limits = std::numeric_limits<To>;
  if constexpr (always_holds<From, To>()) {
    return true;
  } else if constexpr (std::is_floating_point_v<To>) {
    return !std::isinf(static_cast<To>(v)) || std::isinf(v);
  } else if constexpr (std::is_floating_point_v<From>) {
    // The greatest To may not be a From; the power of two above it is one. NaN compares to nothing.
    return v >= static_cast<From>(Limits::min()) && v < -static_cast<From>(Limits::min());
  } else {
    return v >= static_cast<From>(Limits::min()) && v <= static_cast<From>(Limits::max());
  }
}

template <typename T>
inline bool is_nan(T v) {
  return v != v;
}

// Elements that are looked at together; what is rare is looked for in those alone that have some of
// it.
constexpr int64_t kBlock = 256;

template <typename From, typename To, bool kSwap>
WEIR_CLONES int64_t convert(const void* from, void* to, int64_t count, const Filling& filling,
                            int64_t* first) {
  const From* in = static_cast<const From*>(from);
  Bits<To>* out = static_cast<Bits<To>*>(to);
  const To fill = filling.value.as<To>();
  int64_t faults = 0;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = begin + kBlock < count ? begin + kBlock : count;
    int lost = 0;
    for (int64_t i = begin; i < end; ++i) {
      const bool held = holds<From, To>(in[i]);
      const To value = held ? static_cast<To>(held ? in[i] : From{}) : fill;
      const Bits<To> bits = std::bit_cast<Bits<To>>(value);
      out[i] = kSwap ? swapped(bits) : bits;
      lost += held ? 0 : 1;
    }
    for (int64_t i = begin; lost > 0 && i < end; ++i) {
      if (holds<From, To>(in[i]) || (filling.missing && is_nan(in[i]))) continue;
      if (faults++ == 0) *first = i;
    }
  }
  return faults;
}

template <size_t kBytes>
int64_t copy(const void* from, void* to, int64_t count, const Filling&, int64_t*) {
  memcpy(to, from, static_cast<size_t>(count) * kBytes);
  return 0;
}

template <typename From, typename To, bool kSwap>
struct ConvertKernel {
  static constexpr Convert kRun = convert<From, To, kSwap>;
};

}  // namespace

Convert converter(Type from, Type to, ByteOrder order) {
  if (from != to || swaps(to, order)) return instance<ConvertKernel>(from, to, order);
  switch (size_of(to)) {
    case 8: return copy<8>;
    case 4: return copy<4>;
    case 2: return copy<2>;
    default: return copy<1>;
  }
}

bool may_lose(Type from, Type to) {
  const auto real = [](Type type) { return type == WEIR_FLOAT32 || type == WEIR_FLOAT64; };
  if (real(to)) return real(from) && size_of(to) < size_of(from);
  return real(from) || size_of(to) < size_of(from);
}

double element_at(Type type, const void* values, int64_t index) {
  double value = 0;
  int64_t none = 0;
  const char* at = static_cast<const char*>(values) + index * static_cast<int64_t>(size_of(type));
  converter(type, WEIR_FLOAT64, ByteOrder::kNative)(at, &value, 1, {}, &none);
  return value;
}

Filling Filling::of(const std::optional<Number>& missing, Type file_type) {
  if (missing) return {*missing, true, {}, {}};
  return {default_fill(file_type), false, {}, {}};
}

}  // namespace weir::output
