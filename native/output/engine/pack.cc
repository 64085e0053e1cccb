// SPDX-License-Identifier: Apache-2.0
// From the model's type to integers of a packed field: the nearest number, halves to even.
#include <cmath>
#include <limits>

#include "output/engine/by_type.h"

namespace weir::output {

namespace {

// A value that would be packed to the fill value is a fault, too: readers take it for missing.
template <typename From, typename To, bool kSwap>
int64_t pack(const void* from, void* to, int64_t count, const Filling& filling, int64_t* first) {
  const From* in = static_cast<const From*>(from);
  Bits<To>* out = static_cast<Bits<To>*>(to);
  const To fill = filling.value.as<To>();
  const From mark = filling.in_memory ? filling.in_memory->as<From>() : From{};
  const double scale = filling.packing->scale, offset = filling.packing->offset;
  int64_t faults = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double packed = std::nearbyint((static_cast<double>(in[i]) - offset) / scale);
    const bool held = packed >= std::numeric_limits<To>::min() &&
                      packed <= std::numeric_limits<To>::max() &&
                      packed != static_cast<double>(fill);
    const bool missing =
        filling.missing && (in[i] != in[i] || (filling.in_memory && in[i] == mark));
    if (!held && !missing && faults++ == 0) *first = i;
    const Bits<To> bits =
        std::bit_cast<Bits<To>>(held && !missing ? static_cast<To>(packed) : fill);
    out[i] = kSwap ? swapped(bits) : bits;
  }
  return faults;
}

template <typename From, typename To, bool kSwap>
struct PackKernel {
  static constexpr Convert kRun = nullptr;  // check_packing has refused it
};
template <typename From, typename To, bool kSwap>
  requires(std::is_integral_v<To> && sizeof(To) <= 4)
struct PackKernel<From, To, kSwap> {
  static constexpr Convert kRun = pack<From, To, kSwap>;
};

}  // namespace

Convert packer(Type from, Type to, ByteOrder order) {
  return instance<PackKernel>(from, to, order);
}

}  // namespace weir::output
