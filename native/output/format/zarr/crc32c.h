// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli; RFC 3720, appendix B.4), of shard indices. Polynomial 0x1EDC6F41, reflected.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weir::output::zarr {

constexpr std::array<uint32_t, 256> kCrcTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; bit++) value = value & 1 ? value >> 1 ^ 0x82F63B78u : value >> 1;
    table[i] = value;
  }
  return table;
}();

constexpr uint32_t crc32c(const char* data, size_t bytes) {
  uint32_t value = ~0u;
  for (size_t i = 0; i < bytes; i++)
    value = value >> 8 ^ kCrcTable[(value ^ static_cast<unsigned char>(data[i])) & 0xff];
  return ~value;
}

static_assert(crc32c("123456789", 9) == 0xE3069283u);

}  // namespace weir::output::zarr
