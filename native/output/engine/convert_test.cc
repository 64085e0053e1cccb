// SPDX-License-Identifier: Apache-2.0
#include "output/engine/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace weir::output {
namespace {

template <typename From, typename To>
struct Converted {
  std::vector<To> to;
  int64_t faults = 0, first = -1;

  Converted(const std::vector<From>& from, Type from_type, Type to_type,
            std::optional<Number> missing = {})
      : to(from.size()) {
    const Convert convert = converter(from_type, to_type, ByteOrder::kNative);
    faults = convert(from.data(), to.data(), static_cast<int64_t>(from.size()),
                     Filling::of(missing, to_type), &first);
  }
};

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(),
                 kInf = std::numeric_limits<double>::infinity();

TEST(convert, values_outside_of_a_type_are_counted_and_become_netcdfs_fill_value) {
  const Converted<double, int16_t> c({1, 32767.5, 32768, -32768, -32769, kNan, kInf, -2.9},
                                     WEIR_FLOAT64, WEIR_INT16);
  EXPECT_EQ(c.to, (std::vector<int16_t>{1, 32767, -32767, -32768, -32767, -32767, -32767, -2}));
  EXPECT_EQ(c.faults, 4);
  EXPECT_EQ(c.first, 2);
}

TEST(convert, the_missing_value_goes_before_it_and_nan_is_then_no_fault) {
  const Converted<double, int8_t> c({kNan, 5, 128, kNan}, WEIR_FLOAT64, WEIR_INT8, -99);
  EXPECT_EQ(c.to, (std::vector<int8_t>{-99, 5, -99, -99}));
  EXPECT_EQ(c.faults, 1);
  EXPECT_EQ(c.first, 2);
}

TEST(convert, floats_hold_nan_and_infinity_but_no_double_beyond_them) {
  const Converted<double, float> c({kNan, -kInf, 3.4e38, 1e39, -1e300}, WEIR_FLOAT64, WEIR_FLOAT32);
  EXPECT_TRUE(std::isnan(c.to[0]));
  EXPECT_EQ(c.to[1], -kInf);
  EXPECT_EQ(c.to[2], 3.4e38f);
  EXPECT_EQ(c.to[3], 9.96921e36f);
  EXPECT_EQ(c.faults, 2);
  EXPECT_EQ(c.first, 3);
}

TEST(convert, integers_of_64_bits_keep_all_of_them) {
  constexpr int64_t kMissing = std::numeric_limits<int64_t>::max() - 1;
  const Converted<double, int64_t> c({1, kNan, 9223372036854775808.0}, WEIR_FLOAT64, WEIR_INT64,
                                     Number::exactly(kMissing));
  EXPECT_EQ(c.to, (std::vector<int64_t>{1, kMissing, kMissing}));
  EXPECT_EQ(c.faults, 1);
  const Converted<int64_t, int32_t> narrow({int64_t{1} << 31, -(int64_t{1} << 31), 7}, WEIR_INT64,
                                           WEIR_INT32);
  EXPECT_EQ(narrow.to, (std::vector<int32_t>{-2147483647, std::numeric_limits<int32_t>::min(), 7}));
  EXPECT_EQ(narrow.faults, 1);
  EXPECT_EQ(narrow.first, 0);
}

// Against one element at a time, over lengths around those of a block.
TEST(convert, any_values_are_either_kept_or_counted) {
  constexpr uint64_t kSeed = 11;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  for (int length : {0, 1, 255, 256, 257, 1000}) {
    std::vector<double> in(static_cast<size_t>(length));
    int64_t faults = 0, first = -1;
    for (size_t i = 0; i < in.size(); i++) {
      in[i] = static_cast<double>(static_cast<int64_t>(random() % 300'000)) - 10;
      if (in[i] >= 32768) {
        if (first < 0) first = static_cast<int64_t>(i);
        faults++;
      }
    }
    const Converted<double, int16_t> c(in, WEIR_FLOAT64, WEIR_INT16);
    EXPECT_EQ(c.faults, faults);
    EXPECT_EQ(c.first, first);
    for (size_t i = 0; i < in.size(); i++) EXPECT_EQ(c.to[i], in[i] < 32768 ? in[i] : -32767);
  }
}

TEST(convert, only_types_that_may_lose_values_are_looked_after) {
  EXPECT_TRUE(may_lose(WEIR_FLOAT64, WEIR_FLOAT32) && may_lose(WEIR_FLOAT32, WEIR_INT64) &&
              may_lose(WEIR_INT64, WEIR_INT32));
  EXPECT_FALSE(may_lose(WEIR_FLOAT32, WEIR_FLOAT32) || may_lose(WEIR_FLOAT32, WEIR_FLOAT64) ||
               may_lose(WEIR_INT64, WEIR_FLOAT32));
  EXPECT_FALSE(may_lose(WEIR_INT8, WEIR_INT16) || may_lose(WEIR_INT32, WEIR_INT32));
}

}  // namespace
}  // namespace weir::output
