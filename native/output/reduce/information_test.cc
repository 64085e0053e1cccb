// SPDX-License-Identifier: Apache-2.0
#include "output/reduce/information.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "output/reduce/rounding.h"

namespace weir::output {
namespace {

TEST(information, a_bit_that_follows_its_neighbour_has_one_bit_and_noise_has_none) {
  std::mt19937 random(3);
  std::vector<uint32_t> words(20000);
  // Bit 7 changes every 100 values, bits 0 to 3 are coins, bit 5 alternates, the others are 0.
  for (size_t i = 0; i < words.size(); i++)
    words[i] = (i / 100 % 2 << 7) | (i % 2 << 5) | (random() & 15u);
  BitInformation information(8);
  information.add(words.data(), static_cast<int64_t>(words.size()));
  const std::vector<double> bits = information.information();
  EXPECT_EQ(information.pairs(), 19999);
  const double changes = 199.0 / 19999, stays = 1 - changes;
  EXPECT_NEAR(bits[0], 1 + changes * std::log2(changes) + stays * std::log2(stays), 1e-3);
  EXPECT_NEAR(bits[2], 1, 1e-6);
  for (size_t i : {1, 3, 4, 5, 6, 7}) EXPECT_EQ(bits[i], 0) << i;
  EXPECT_EQ(bits_to_keep(bits, 0.4), 1);
  EXPECT_EQ(bits_to_keep(bits, 0.99), 3);
  EXPECT_EQ(bits_to_keep({0, 0, 0}, 0.99), 0);
}

// 400 fields of noise: at 99 % for each bit, some 80 of them would seem to say something.
TEST(information, noise_has_none_in_any_field) {
  std::mt19937 random(20261126);
  for (int field = 0; field < 400; field++) {
    std::vector<uint32_t> words(10000);
    for (uint32_t& word : words) word = static_cast<uint32_t>(random()) & 0xffffffu;
    BitInformation information(24);
    information.add(words.data(), static_cast<int64_t>(words.size()));
    ASSERT_EQ(bits_to_keep(information.information(), 0.99), 0) << field;
  }
}

TEST(information, runs_cover_every_pair_once_or_are_spread_evenly) {
  for (const auto& [count, row] : {std::pair<int64_t, int64_t>{60, 12}, {5000, 5000}, {9000, 3000},
                                   {7, 7}, {2, 2}}) {
    std::vector<int> seen(static_cast<size_t>(count));
    int64_t pairs = 0;
    each_run(count, row, [&, row = row](int64_t first, int64_t n) {
      EXPECT_EQ(first / row, (first + n - 1) / row);
      pairs += n - 1;
      for (int64_t i = first; i + 1 < first + n; i++) EXPECT_EQ(seen[static_cast<size_t>(i)]++, 0);
    });
    EXPECT_EQ(pairs, count / row * (row - 1));
  }
  int64_t pairs = 0, last = 0;
  each_run(6000000, 3000, [&](int64_t first, int64_t n) { pairs += n - 1, last = first + n; });
  EXPECT_LE(pairs, 70000);
  EXPECT_GE(pairs, 40000);
  EXPECT_GT(last, 5800000);
  each_run(3, 1, [](int64_t, int64_t) { ADD_FAILURE() << "no neighbours"; });
}

template <typename T>
void check_bound(Type type, unsigned seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> part(-1, 1), power(-30, 30);
  std::vector<T> values(3000);
  for (T& v : values) v = static_cast<T>(part(random) * std::exp2(power(random)));
  values[5] = 0;
  values[6] = std::numeric_limits<T>::infinity();
  values[7] = std::numeric_limits<T>::quiet_NaN();
  values[8] = std::numeric_limits<T>::max();
  values[9] = std::numeric_limits<T>::denorm_min();
  values[10] = static_cast<T>(-1e20);
  for (int bits = 1; bits <= mantissa_bits(type); bits++) {
    std::vector<T> out(values.size());
    round_to_bits(bits, type, Number(-1e20), values.data(), 3000, out.data());
    EXPECT_EQ(out[6], values[6]);
    EXPECT_TRUE(out[7] != out[7]);
    EXPECT_TRUE(std::isfinite(out[8]));
    EXPECT_EQ(out[10], values[10]);
    for (size_t i = 0; i < values.size(); i++) {
      if (i >= 6 && i <= 10) continue;
      ASSERT_LE(std::abs(out[i] - values[i]), std::ldexp(std::abs(values[i]), -bits - 1))
          << values[i] << " to " << bits << " bits";
    }
  }
}

TEST(rounding, the_error_is_half_of_the_last_bit_and_what_is_no_value_stays) {
  for (unsigned seed = 1; seed < 4; seed++) {
    check_bound<float>(WEIR_FLOAT32, seed);
    check_bound<double>(WEIR_FLOAT64, seed);
  }
}

TEST(rounding, ties_go_to_even_and_nothing_becomes_the_missing_value) {
  const std::vector<float> values = {1.125f, 1.375f, 1.25f, -1.125f, 1.9999f};
  std::vector<float> out(values.size());
  round_to_bits(2, WEIR_FLOAT32, std::nullopt, values.data(), 5, out.data());
  EXPECT_EQ(out, (std::vector<float>{1.0f, 1.5f, 1.25f, -1.0f, 2.0f}));
  // 1.9999 would become 2, which is missing: the bits behind are cut instead. 1.01 would become 1
  // both ways and stays.
  round_to_bits(2, WEIR_FLOAT32, Number(2.0), values.data(), 5, out.data());
  EXPECT_EQ(out[4], 1.75f);
  const float low = 1.01f;
  round_to_bits(2, WEIR_FLOAT32, Number(1.0), &low, 1, out.data());
  EXPECT_EQ(out[0], low);
}

}  // namespace
}  // namespace weir::output
