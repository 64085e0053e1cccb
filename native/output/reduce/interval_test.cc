// SPDX-License-Identifier: Apache-2.0
#include "output/reduce/interval.h"

#include <gtest/gtest.h>

namespace weir::output {
namespace {

// Frames 10 to 14, one a minute; 14 is due.
void frames(Interval& interval, std::initializer_list<int64_t> accumulated) {
  for (int64_t number : accumulated) interval.add(number, 60.0 * static_cast<double>(number - 1));
}

TEST(Interval, with_all_its_steps_lacks_nothing_and_begins_at_the_frame_before) {
  Interval interval;
  EXPECT_TRUE(interval.enter(10));
  EXPECT_FALSE(interval.enter(10));
  frames(interval, {10, 11, 12, 13, 14});
  EXPECT_FALSE(interval.lacks(14));
  EXPECT_EQ(interval.since_s(), 540);
}

TEST(Interval, that_a_server_took_with_it_says_where_its_values_begin) {
  Interval interval;
  interval.enter(10);
  frames(interval, {13, 14});
  EXPECT_TRUE(interval.lacks(14));
  EXPECT_EQ(interval.since_s(), 720);
  EXPECT_EQ(interval.in_words(14),
            "cover 2 of 5 steps, from 720 s on: the values of the steps before were lost with the "
            "server that had them");
}

TEST(Interval, counts_frames_that_were_left_out) {
  Interval interval;
  interval.enter(10);
  frames(interval, {10, 12, 14});
  EXPECT_TRUE(interval.lacks(14));
  EXPECT_EQ(interval.in_words(14), "cover 3 of 5 steps: 2 frames were left out");
  interval.enter(15);
  interval.add(17, 960);
  interval.add(19, 1080);
  EXPECT_EQ(interval.in_words(19),
            "cover 2 of 5 steps, from 960 s on: the values of the steps before were lost with the "
            "server that had them; 1 frame was left out");
}

TEST(Interval, begins_anew_though_its_due_frame_never_came) {
  Interval interval;
  interval.enter(10);
  frames(interval, {10, 11});
  EXPECT_TRUE(interval.enter(15));
  interval.add(15, 840);
  EXPECT_FALSE(interval.lacks(15));
  EXPECT_EQ(interval.since_s(), 840);
}

}  // namespace
}  // namespace weir::output
