// SPDX-License-Identifier: Apache-2.0
#include "output/format/grib/bits.h"

#include <bit>
#include <cstring>
#include <utility>

#include "output/format/grib/clones.h"

namespace weir::output::grib {
namespace {

constexpr int kGroup = 8;  // numbers: of any width, they end at a byte
constexpr int kWord = 64, kWidest = 32;

WEIR_INLINE void store_word(uint64_t word, char* to) {
  if constexpr (std::endian::native == std::endian::little) word = __builtin_bswap64(word);
  std::memcpy(to, &word, sizeof word);
}

// The 64 bits of a group from bit kFrom on; beyond its end they are 0.
template <int kBits, int kFrom>
WEIR_INLINE uint64_t word_of(const uint64_t (&pairs)[kGroup / 2]) {
  uint64_t word = 0;
  const auto add = [&]<int kPair>() WEIR_ALWAYS {
    constexpr int kEnd = 2 * kBits * (kPair + 1), kRight = kEnd - (kFrom + kWord);
    if constexpr (kEnd > kFrom && kEnd - 2 * kBits < kFrom + kWord) {
      if constexpr (kRight > 0) word |= pairs[kPair] >> kRight;
      else word |= pairs[kPair] << -kRight;
    }
  };
  [&]<int... kPairs>(std::integer_sequence<int, kPairs...>) WEIR_ALWAYS {
    (add.template operator()<kPairs>(), ...);
  }(std::make_integer_sequence<int, kGroup / 2>{});
  return word;
}

// Words that do not overlap, and the last one that ends where the group does. Groups that are
// shorter than a word write beyond their end.
template <int kBits>
WEIR_INLINE void store_group(const uint32_t* in, char* to) {
  constexpr int kAll = kGroup * kBits;
  uint64_t pairs[kGroup / 2];
  for (int i = 0; i < kGroup / 2; i++) pairs[i] = uint64_t{in[2 * i]} << kBits | in[2 * i + 1];
  [&]<int... kWords>(std::integer_sequence<int, kWords...>) WEIR_ALWAYS {
    (store_word(word_of<kBits, kWords * kWord>(pairs), to + kWords * kWord / 8), ...);
  }(std::make_integer_sequence<int, kAll / kWord>{});
  if constexpr (kAll < kWord) store_word(word_of<kBits, 0>(pairs), to);
  else if constexpr (kAll % kWord != 0)
    store_word(word_of<kBits, kAll - kWord>(pairs), to + (kAll - kWord) / 8);
}

template <int kBits>
WEIR_INLINE void store_groups(const uint32_t* in, int64_t groups, char* to) {
  for (int64_t g = 0; g < groups; g++) store_group<kBits>(in + g * kGroup, to + g * kBits);
}

WEIR_CLONES void store_groups(const uint32_t* in, int64_t groups, int bits, char* to) {
  [&]<int... kLess>(std::integer_sequence<int, kLess...>) WEIR_ALWAYS {
    ((bits == kLess + 1 && (store_groups<kLess + 1>(in, groups, to), true)) || ...);
  }(std::make_integer_sequence<int, kWidest>{});
}

// One number at a time; it begins at a byte.
void store_rest(const uint32_t* in, int64_t count, int bits, char* to) {
  uint64_t held = 0;
  int have = 0;
  for (int64_t i = 0; i < count; i++) {
    held = held << bits | in[i];
    have += bits;
    while (have >= 8) *to++ = static_cast<char>(held >> (have -= 8));
  }
  if (have > 0) *to = static_cast<char>(held << (8 - have));
}

}  // namespace

void store_bits(const uint32_t* in, int64_t count, int bits, char* to) {
  // What narrow groups write beyond their end must be the numbers' own bytes.
  const int64_t whole = count / kGroup, kept = bits < 8 ? 8 / bits : 0;
  const int64_t groups = whole > kept ? whole - kept : 0;
  store_groups(in, groups, bits, to);
  store_rest(in + groups * kGroup, count - groups * kGroup, bits, to + groups * bits);
}

}  // namespace weir::output::grib
