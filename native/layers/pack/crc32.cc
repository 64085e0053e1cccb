// SPDX-License-Identifier: Apache-2.0
#include "layers/pack/crc32.h"

#include <string.h>

#include <array>

namespace weir::layers::pack {
namespace {

// Eight tables: the effect of a byte that lies 0 to 7 bytes before the end of a word.
constexpr int kTables = 8;
using Tables = std::array<std::array<uint32_t, 256>, kTables>;

constexpr Tables make_tables() {
  Tables t{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? 0xedb88320u ^ (c >> 1) : c >> 1;
    t[0][i] = c;
  }
  for (uint32_t i = 0; i < 256; ++i) {
    for (size_t k = 1; k < kTables; ++k) t[k][i] = t[0][t[k - 1][i] & 255] ^ (t[k - 1][i] >> 8);
  }
  return t;
}

constexpr Tables kT = make_tables();

}  // namespace

uint32_t crc32(uint32_t crc, const void* data, size_t n) {
  const auto* p = static_cast<const unsigned char*>(data);
  uint32_t c = ~crc;
  for (; n >= 8; n -= 8, p += 8) {
    uint64_t word;
    memcpy(&word, p, 8);  // little-endian, as all platforms that weir knows
    word ^= c;
    c = kT[7][word & 255] ^ kT[6][word >> 8 & 255] ^ kT[5][word >> 16 & 255] ^
        kT[4][word >> 24 & 255] ^ kT[3][word >> 32 & 255] ^ kT[2][word >> 40 & 255] ^
        kT[1][word >> 48 & 255] ^ kT[0][word >> 56];
  }
  for (; n > 0; --n, ++p) c = kT[0][(c ^ *p) & 255] ^ (c >> 8);
  return ~c;
}

}  // namespace weir::layers::pack
