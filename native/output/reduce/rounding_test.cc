// SPDX-License-Identifier: Apache-2.0
#include "output/reduce/rounding.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace weir::output {
namespace {

constexpr unsigned kSeed = 4711;
constexpr int kTries = 20000;

template <typename T>
struct Of;
template <>
struct Of<float> {
  using Word = uint32_t;
  static constexpr Type kType = WEIR_FLOAT32;
};
template <>
struct Of<double> {
  using Word = uint64_t;
  static constexpr Type kType = WEIR_FLOAT64;
};

template <typename T>
typename Of<T>::Word word_of(T value) {
  return std::bit_cast<typename Of<T>::Word>(value);
}

template <typename T>
std::vector<T> rounded(int bits, const std::vector<T>& values, std::optional<Number> missing = {}) {
  std::vector<T> to(values.size());
  round_to_bits(bits, Of<T>::kType, missing, values.data(), static_cast<int64_t>(values.size()),
                to.data());
  return to;
}

// To nearest, ties to even, in steps of the last bit that stays: of denormal numbers the steps are
// those of the smallest normal one.
template <typename T>
T nearest(T value, int bits) {
  const int exponent = std::max(std::ilogb(value), std::numeric_limits<T>::min_exponent - 1);
  const long double step = std::ldexp(1.0L, exponent - bits);
  const long double near = std::nearbyint(value / step) * step;
  return near > std::numeric_limits<T>::max() || near < std::numeric_limits<T>::lowest()
             ? static_cast<T>(std::trunc(value / step) * step)
             : static_cast<T>(near);
}

// Words of all kinds: most random ones are normal numbers, so that denormal ones are made apart.
template <typename T>
std::vector<T> all_kinds() {
  std::mt19937_64 random(kSeed);
  std::vector<T> values;
  for (int i = 0; i < kTries; i++) {
    auto word = static_cast<typename Of<T>::Word>(random());
    if (i % 4 == 0) word &= ~word_of(std::numeric_limits<T>::infinity());  // denormal
    values.push_back(std::bit_cast<T>(word));
  }
  using Limits = std::numeric_limits<T>;
  for (T one : {T{0}, Limits::min(), Limits::denorm_min(), Limits::max(),
                std::nextafter(Limits::min(), T{0}), Limits::infinity(), Limits::quiet_NaN()}) {
    values.push_back(one);
    values.push_back(-one);
  }
  return values;
}

template <typename T>
void check_all_kinds() {
  const std::vector<T> values = all_kinds<T>();
  for (int bits = 1; bits < mantissa_bits(Of<T>::kType); bits += bits < 6 ? 1 : 5) {
    const std::vector<T> there = rounded(bits, values);
    for (size_t i = 0; i < values.size(); i++) {
      const T value = values[i];
      if (!std::isfinite(value) || value == 0) {  // each bit of a NaN, and the sign of a zero
        ASSERT_EQ(word_of(there[i]), word_of(value)) << i;
        continue;
      }
      ASSERT_EQ(there[i], nearest(value, bits)) << i << ": " << value << " seed " << kSeed;
      ASSERT_EQ(std::signbit(there[i]), std::signbit(value)) << value;
      const bool is_largest = std::abs(value) > std::numeric_limits<T>::max() / 2;
      const long double least = std::numeric_limits<T>::min(),
                        size = std::max<long double>(std::abs(value), least);
      const long double bound = size * std::ldexp(1.0L, is_largest ? -bits : -bits - 1);
      ASSERT_LE(std::abs(static_cast<long double>(there[i]) - value), bound) << value;
    }
  }
}

TEST(rounding, errors_of_float32_are_at_most_half_a_step_denormal_numbers_too) {
  check_all_kinds<float>();
}

TEST(rounding, errors_of_float64_are_at_most_half_a_step_denormal_numbers_too) {
  check_all_kinds<double>();
}

template <typename T>
void check_missing(T none) {
  std::vector<T> values = all_kinds<T>();
  for (size_t i = 0; i < values.size(); i += 7) values[i] = none;
  // Neighbours of it, which would be rounded to it.
  for (int i = 1; i < 40; i++) {
    values.push_back(std::bit_cast<T>(word_of(none) + static_cast<typename Of<T>::Word>(i)));
    values.push_back(std::bit_cast<T>(word_of(none) - static_cast<typename Of<T>::Word>(i)));
  }
  Number missing{};
  missing.real = static_cast<double>(none);
  const std::vector<T> there = rounded(3, values, missing);
  for (size_t i = 0; i < values.size(); i++)
    ASSERT_EQ(word_of(there[i]) == word_of(none), word_of(values[i]) == word_of(none)) << values[i];
}

TEST(rounding, what_is_missing_stays_so_and_nothing_else_becomes_it) {
  check_missing<float>(-9e9f);
  check_missing<float>(1e20f);
  check_missing<float>(256);
  check_missing<double>(-9e33);
  check_missing<double>(1024);
}

TEST(rounding, a_second_time_changes_nothing) {
  for (const int bits : {1, 7, 15, 22}) {
    const std::vector<float> once = rounded(bits, all_kinds<float>()), twice = rounded(bits, once);
    for (size_t i = 0; i < once.size(); i++) ASSERT_EQ(word_of(once[i]), word_of(twice[i]));
  }
}

TEST(rounding, the_share_of_information_is_estimated_without_what_is_none) {
  std::vector<float> values(180 * 90);
  std::mt19937_64 random(kSeed);
  std::normal_distribution<float> noise(0, 0.05f);
  for (size_t i = 0; i < values.size(); i++)
    values[i] = 250 + 20 * std::sin(0.05f * static_cast<float>(i)) + noise(random);
  std::vector<float> to(values.size());
  const auto bits_of = [&](std::optional<Number> missing) {
    return round_values({0, 0.99}, WEIR_FLOAT32, missing, values.data(),
                        static_cast<int64_t>(values.size()), 180, to.data());
  };
  const int bits = bits_of({});
  EXPECT_GT(bits, 3);
  EXPECT_LT(bits, 18);
  Number missing{};
  missing.real = -9e9;
  const float kinds[] = {std::numeric_limits<float>::quiet_NaN(), -9e9f,
                         std::numeric_limits<float>::infinity()};
  for (size_t i = 0; i < values.size(); i += 9) values[i] = kinds[i / 9 % 3];
  EXPECT_NEAR(bits_of(missing), bits, 1);
  for (size_t i = 0; i < values.size(); i += 9)
    ASSERT_EQ(word_of(to[i]), word_of(kinds[i / 9 % 3]));
  // Nothing to estimate from.
  values.assign(values.size(), std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(bits_of(missing), 23);
}

}  // namespace
}  // namespace weir::output
