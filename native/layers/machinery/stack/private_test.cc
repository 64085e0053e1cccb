// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/stack/private.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace weir::stack {
namespace {

int fresh() { return open("/dev/null", O_RDWR); }

// What the front keeps for itself (where the report of lost bytes goes) is there already when its
// tests ran before.
int kept_so_far() {
  int n = 0;
  for (int fd = next_private(0); fd >= 0; fd = next_private(static_cast<unsigned>(fd) + 1)) ++n;
  return n;
}

TEST(Private, a_kept_descriptor_moves_high_and_closes_on_exec) {
  const int low = fresh();
  int place = -1;
  ASSERT_TRUE(keep_private(low, &place));
  EXPECT_GT(place, low);
  EXPECT_EQ(fcntl(low, F_GETFD), -1);
  EXPECT_EQ(fcntl(place, F_GETFD), FD_CLOEXEC);
  EXPECT_TRUE(is_private(place));
  EXPECT_EQ(next_private(static_cast<unsigned>(place)), place);
  EXPECT_EQ(next_private(static_cast<unsigned>(place) + 1), -1);
  const int number = place;
  close_private(&place);
  EXPECT_EQ(place, -1);
  EXPECT_FALSE(is_private(number));
  EXPECT_EQ(fcntl(number, F_GETFD), -1);
}

TEST(Private, a_number_that_the_program_takes_is_given_up) {
  int place = -1;
  ASSERT_TRUE(keep_private(fresh(), &place));
  const int wanted = place;
  make_way(wanted);
  EXPECT_NE(place, wanted);
  EXPECT_TRUE(is_private(place));
  EXPECT_FALSE(is_private(wanted));
  ASSERT_EQ(dup2(0, wanted), wanted);
  EXPECT_GE(fcntl(place, F_GETFD), 0);
  close(wanted);
  close_private(&place);
}

TEST(Private, an_adopted_number_goes_up_for_the_program_and_down_to_the_lowest) {
  const int low = fresh();
  int place = low;
  ASSERT_TRUE(adopt_private(low, &place));
  ASSERT_TRUE(move_up(&place));
  EXPECT_GT(place, low);
  EXPECT_TRUE(is_private(place));
  EXPECT_FALSE(is_private(low));
  EXPECT_EQ(fresh(), low);
  const int next = fresh();
  close(next);
  const int high = place;
  ASSERT_TRUE(move_down(&place));
  EXPECT_EQ(place, next);
  EXPECT_TRUE(is_private(next));
  EXPECT_EQ(fcntl(high, F_GETFD), -1);
  EXPECT_TRUE(move_down(&place));
  EXPECT_EQ(place, next) << "it is the lowest";
  close(low);
  EXPECT_TRUE(move_down(&place));
  EXPECT_EQ(place, low);
  EXPECT_EQ(fcntl(next, F_GETFD), -1);
  close_private(&place);
}

TEST(Private, there_is_a_limit_and_no_leak_beyond_it) {
  const int before = kept_so_far();
  int places[600];
  int kept = 0;
  for (int& place : places) kept += keep_private(fresh(), &place);
  EXPECT_EQ(kept + before, 512);
  EXPECT_EQ(places[599], -1);
  for (int& place : places) close_private(&place);
  EXPECT_EQ(kept_so_far(), before);
  int again = -1;
  EXPECT_TRUE(keep_private(fresh(), &again));
  close_private(&again);
}

}  // namespace
}  // namespace weir::stack
