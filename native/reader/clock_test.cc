// SPDX-License-Identifier: Apache-2.0
#include "reader/clock.h"

#include <gtest/gtest.h>

namespace {

using weir::reader::timestamp_ns;
using weir::reader::length_ns;

constexpr int64_t kBase = 1'700'000'000'000'000'000;

TEST(Clock, one_ns_a_tick_is_the_identity) {
  const weir_reader_clock clock = {1000, kBase, uint64_t{1} << 48};
  EXPECT_EQ(timestamp_ns(clock, 1000), kBase);
  EXPECT_EQ(timestamp_ns(clock, 1007), kBase + 7);
  EXPECT_EQ(length_ns(clock, 12345), 12345u);
}

TEST(Clock, ticks_before_the_origin_round_down_as_those_after) {
  const weir_reader_clock clock = {1000, kBase, uint64_t{1} << 47};  // half a ns
  EXPECT_EQ(timestamp_ns(clock, 1003), kBase + 1);
  EXPECT_EQ(timestamp_ns(clock, 997), kBase - 2);
}

TEST(Clock, a_day_at_three_gigahertz_is_exact_to_the_ns) {
  const auto third = static_cast<uint64_t>((static_cast<unsigned __int128>(1) << 48) / 3);
  const weir_reader_clock clock = {0, 0, third};
  const uint64_t day_ticks = uint64_t{86'400} * 3'000'000'000;
  EXPECT_NEAR(static_cast<double>(length_ns(clock, day_ticks)), 86'400e9, 1.0);
}

TEST(Clock, order_is_kept) {
  const weir_reader_clock clock = {500, kBase, (uint64_t{1} << 48) / 7};
  for (uint64_t ticks = 0; ticks < 2000; ++ticks)
    ASSERT_LE(timestamp_ns(clock, ticks), timestamp_ns(clock, ticks + 1));
}

}  // namespace
