// SPDX-License-Identifier: Apache-2.0
// Compiled without contraction to fused operations: the last bit decides about the rounding of
// values in the middle of two steps, and must be that of ecCodes.
#include "output/format/grib/simple.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "output/format/grib/bits.h"
#include "output/format/grib/clones.h"

namespace weir::output::grib {
namespace {

constexpr int64_t kLanes = 32;
constexpr int64_t kBlock = 1024;  // values that are quantised, then packed

// A minimum and a maximum in each lane: comparisons with NaN are false, so NaN never is one.
template <typename T>
struct Lanes {
  T low[kLanes], high[kLanes];
  int32_t missing[kLanes];
};

template <typename T>
WEIR_INLINE void scan(const T* in, int64_t blocks, T missing, Lanes<T>* lanes) {
  for (int64_t b = 0; b < blocks; b++, in += kLanes) {
    for (int64_t i = 0; i < kLanes; i++) {
      const T v = in[i];
      const bool none = v != v || v == missing;
      lanes->missing[i] += none;
      const T low = v < lanes->low[i] ? v : lanes->low[i];
      const T high = v > lanes->high[i] ? v : lanes->high[i];
      lanes->low[i] = none ? lanes->low[i] : low;
      lanes->high[i] = none ? lanes->high[i] : high;
    }
  }
}

WEIR_WIDE_CLONES void scan_floats(const float* in, int64_t blocks, float missing,
                                  Lanes<float>* lanes) {
  scan(in, blocks, missing, lanes);
}
WEIR_WIDE_CLONES void scan_doubles(const double* in, int64_t blocks, double missing,
                                   Lanes<double>* lanes) {
  scan(in, blocks, missing, lanes);
}

template <typename T>
Range scan_all(const T* in, int64_t count, const double* missing) {
  // NaN equals nothing: without a missing value nothing is it.
  const T none = missing ? static_cast<T>(*missing) : std::numeric_limits<T>::quiet_NaN();
  Lanes<T> lanes;
  for (int64_t i = 0; i < kLanes; i++) {
    lanes.low[i] = std::numeric_limits<T>::infinity();
    lanes.high[i] = -lanes.low[i];
    lanes.missing[i] = 0;
  }
  const int64_t blocks = count / kLanes;
  // Counts of 32 bits: a lane counts at most a block's worth at once.
  constexpr int64_t kMost = int64_t{1} << 30;
  Range range{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), 0};
  for (int64_t b = 0; b < blocks; b += kMost) {
    const int64_t n = blocks - b < kMost ? blocks - b : kMost;
    if constexpr (sizeof(T) == 4) scan_floats(in + b * kLanes, n, none, &lanes);
    else scan_doubles(in + b * kLanes, n, none, &lanes);
    for (int32_t& m : lanes.missing) range.missing += std::exchange(m, 0);
  }
  for (int64_t i = 0; i < kLanes; i++) {
    if (lanes.low[i] < range.low) range.low = static_cast<double>(lanes.low[i]);
    if (lanes.high[i] > range.high) range.high = static_cast<double>(lanes.high[i]);
  }
  for (int64_t i = blocks * kLanes; i < count; i++) {
    const double v = static_cast<double>(in[i]);
    if (in[i] != in[i] || in[i] == none) {
      range.missing++;
      continue;
    }
    if (v < range.low) range.low = v;
    if (v > range.high) range.high = v;
  }
  return range;
}

template <typename T>
void split(const T* in, int64_t count, T none, char* bitmap, T* out) {
  for (int64_t i = 0; i < count; i++) {
    const bool has = in[i] == in[i] && in[i] != none;
    bitmap[i / 8] = static_cast<char>(bitmap[i / 8] | (has ? 0x80 >> i % 8 : 0));
    *out = in[i];
    out += has;
  }
}

// The greatest float32 that is not above.
double float_below(double value) {
  const float near = static_cast<float>(value);
  return static_cast<double>(static_cast<double>(near) > value
                                 ? std::nextafterf(near, -std::numeric_limits<float>::infinity())
                                 : near);
}

struct Steps {
  double reference, factor;  // R, 2^-E
};

Steps steps_with(const Scale& scale) {
  return {scale.reference, std::ldexp(1.0, -scale.binary)};
}

// X of a value. Up to 31 bits it is a number of 32 with a sign, which processors convert to in one
// instruction.
template <typename T>
WEIR_INLINE uint32_t step_of(T value, const Steps& s) {
  return static_cast<uint32_t>(
      static_cast<int32_t>((static_cast<double>(value) - s.reference) * s.factor + 0.5));
}

// Most significant byte first; messages begin anywhere.
template <typename T>
WEIR_INLINE void steps16(const T* in, int64_t count, Steps s, char* out) {
  for (int64_t i = 0; i < count; i++) {
    const uint32_t x = step_of(in[i], s);
    const auto swapped = static_cast<uint16_t>((x << 8 & 0xff00) | (x >> 8 & 0xff));
    std::memcpy(out + 2 * i, &swapped, sizeof swapped);
  }
}

template <typename T>
WEIR_INLINE void steps32(const T* in, int64_t count, Steps s, uint32_t* out) {
  for (int64_t i = 0; i < count; i++) out[i] = step_of(in[i], s);
}

WEIR_WIDE_CLONES void floats16(const float* in, int64_t n, const Steps& s, char* out) {
  steps16(in, n, s, out);
}
WEIR_WIDE_CLONES void doubles16(const double* in, int64_t n, const Steps& s, char* out) {
  steps16(in, n, s, out);
}
WEIR_WIDE_CLONES void floats32(const float* in, int64_t n, const Steps& s, uint32_t* out) {
  steps32(in, n, s, out);
}
WEIR_WIDE_CLONES void doubles32(const double* in, int64_t n, const Steps& s, uint32_t* out) {
  steps32(in, n, s, out);
}

void steps(const float* in, int64_t n, const Steps& s, char* out) {
  floats16(in, n, s, out);
}
void steps(const double* in, int64_t n, const Steps& s, char* out) {
  doubles16(in, n, s, out);
}
void steps(const float* in, int64_t n, const Steps& s, uint32_t* out) {
  floats32(in, n, s, out);
}
void steps(const double* in, int64_t n, const Steps& s, uint32_t* out) {
  doubles32(in, n, s, out);
}

template <typename T>
void steps_of(const T* in, int64_t n, int bits, const Steps& s, uint32_t* out) {
  if (bits < 32) return steps(in, n, s, out);
  for (int64_t i = 0; i < n; i++) {
    out[i] = static_cast<uint32_t>(static_cast<uint64_t>(
        (static_cast<double>(in[i]) - s.reference) * s.factor + 0.5));
  }
}

template <typename T>
void pack_all(const T* in, int64_t count, const Scale& scale, char* to) {
  const int width = scale.bits;
  const Steps s = steps_with(scale);
  if (width == 16) return steps(in, count, s, to);
  for (int64_t at = 0; at < count; at += kBlock, to += kBlock / 8 * width) {
    const int64_t n = count - at < kBlock ? count - at : kBlock;
    uint32_t block[kBlock];
    steps_of(in + at, n, scale.bits, s, block);
    store_bits(block, n, width, to);
  }
}

}  // namespace

Range range_of(Type type, const void* values, int64_t count, const double* missing) {
  return type == WEIR_FLOAT32 ? scan_all(static_cast<const float*>(values), count, missing)
                              : scan_all(static_cast<const double*>(values), count, missing);
}

void split_missing(Type type, const void* values, int64_t count, const double* missing,
                   std::vector<char>* bitmap, std::vector<char>* present) {
  bitmap->assign(static_cast<size_t>(count + 7) / 8, 0);
  present->resize(static_cast<size_t>(count + 1) * size_of(type));
  const double none = missing ? *missing : NAN;
  if (type == WEIR_FLOAT32) {
    split(static_cast<const float*>(values), count, static_cast<float>(none), bitmap->data(),
          reinterpret_cast<float*>(present->data()));
  } else {
    split(static_cast<const double*>(values), count, none, bitmap->data(),
          reinterpret_cast<double*>(present->data()));
  }
}

namespace {

// What a float32 holds without losing digits, and not near its ends.
bool usual(double v) {
  constexpr double kMost = 1e37, kLeast = 1e-30;
  return v == 0 || (std::abs(v) < kMost && std::abs(v) > kLeast);
}

bool usual(const Range& range) {
  return std::isfinite(range.low) && std::isfinite(range.high) && usual(range.low) &&
         usual(range.high) && range.low <= range.high;
}

}  // namespace

// ecCodes: the least scale with which the range, rounded to steps, needs no more bits.
Scale scale_for(const Range& range, int bits) {
  Scale scale;
  scale.valid = usual(range);
  if (!scale.valid) return scale;
  scale.reference = float_below(range.low);
  if (range.low == range.high) {
    scale.valid = scale.reference == range.low;
    return scale;
  }
  const double width = range.high - scale.reference;
  const double most = std::ldexp(1.0, bits) - 1;
  double factor = 1;
  while (width * factor <= most) scale.binary--, factor *= 2;
  while (width * factor > most) scale.binary++, factor /= 2;
  const auto steps = [&] { return std::floor(width * factor + 0.5); };
  while (steps() <= most) scale.binary--, factor *= 2;
  while (steps() > most) scale.binary++, factor /= 2;
  scale.bits = bits;
  scale.valid = std::abs(scale.binary) < 120;
  return scale;
}

void steps_of(Type type, const void* values, int64_t first, int64_t count, const Scale& scale,
              uint32_t* to) {
  const Steps s = steps_with(scale);
  if (type == WEIR_FLOAT32) {
    steps_of(static_cast<const float*>(values) + first, count, scale.bits, s, to);
  } else {
    steps_of(static_cast<const double*>(values) + first, count, scale.bits, s, to);
  }
}

void pack(Type type, const void* values, int64_t count, const Scale& scale, char* to) {
  if (type == WEIR_FLOAT32) {
    pack_all(static_cast<const float*>(values), count, scale, to);
  } else {
    pack_all(static_cast<const double*>(values), count, scale, to);
  }
}

}  // namespace weir::output::grib
