// SPDX-License-Identifier: Apache-2.0
#include "output/format/grib/bits.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace weir::output::grib {
namespace {

std::string one_by_one(const std::vector<uint32_t>& numbers, int bits) {
  std::string out((numbers.size() * static_cast<size_t>(bits) + 7) / 8, '\0');
  size_t at = 0;
  for (const uint32_t number : numbers) {
    for (int bit = bits - 1; bit >= 0; bit--, at++) {
      if (number >> bit & 1) out[at / 8] = static_cast<char>(out[at / 8] | 0x80 >> at % 8);
    }
  }
  return out;
}

TEST(bits, numbers_of_any_width_and_number_are_stored_without_writing_beyond) {
  std::mt19937 random(20261126);
  for (int bits = 1; bits <= 32; bits++) {
    for (int count = 0; count < 200; count++) {
      std::vector<uint32_t> numbers(static_cast<size_t>(count));
      for (uint32_t& n : numbers) n = static_cast<uint32_t>(random()) >> (32 - bits);
      const std::string expected = one_by_one(numbers, bits) + "beyond";
      std::string out(expected.size() - 6, '?');
      out += "beyond";
      store_bits(numbers.data(), count, bits, out.data());
      ASSERT_EQ(out, expected) << count << " numbers of " << bits << " bits";
    }
  }
}

}  // namespace
}  // namespace weir::output::grib
