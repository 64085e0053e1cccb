// SPDX-License-Identifier: Apache-2.0
// Jobs are done once each, in order, one at a time, with a thread and without; a failure stops
// those behind it and is reported once.
#include "output/engine/write_behind.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <vector>

namespace weir::output {
namespace {

class WriteBehindTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    behind.start(GetParam());
    ASSERT_EQ(behind.threaded(), GetParam());
  }
  WriteBehind behind;
};

TEST_P(WriteBehindTest, does_all_jobs_in_order_and_those_before_the_last_when_hand_returns) {
  std::vector<int> done;
  std::atomic<int> inside = 0, ended = 0;
  bool alone = true;
  for (int i = 0; i < 5000; ++i) {
    EXPECT_TRUE(behind.hand([&, i] {
      alone = alone && ++inside == 1;
      done.push_back(i);
      --inside;
      ++ended;
      return Status();
    }).ok());
    ASSERT_GE(ended, i);
  }
  EXPECT_TRUE(behind.finish().ok());
  std::vector<int> all(5000);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(done, all);
  EXPECT_TRUE(alone);
}

TEST_P(WriteBehindTest, stops_behind_a_failure_and_tells_it_once) {
  for (int round = 0; round < 200; ++round) {
    std::vector<int> done;
    int reported = 0;
    for (int i = 0; i < 4 && reported == 0; ++i) {
      const Status s = behind.hand([&done, i] {
        done.push_back(i);
        return i == 1 ? Status(WEIR_E_FILE, "full") : Status();
      });
      reported += s.code() == WEIR_E_FILE;
    }
    reported += behind.finish().code() == WEIR_E_FILE;
    EXPECT_EQ(reported, 1);
    EXPECT_EQ(done, (std::vector<int>{0, 1}));
    EXPECT_TRUE(behind.finish().ok());
  }
}

INSTANTIATE_TEST_SUITE_P(All, WriteBehindTest, testing::Bool());

}  // namespace
}  // namespace weir::output
