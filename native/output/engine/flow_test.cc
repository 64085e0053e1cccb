// SPDX-License-Identifier: Apache-2.0
// Which group has which file, and how much of it is written, while groups are lost.
#include <gtest/gtest.h>

#include "output/engine/flow.h"

namespace weir::output {
namespace {

// One stream of one field at each step, five frames a file, three groups.
class FlowTest : public ::testing::Test {
 protected:
  FlowTest() {
    setup_.catalogue.streams.emplace_back();
    Stream& stream = setup_.catalogue.streams.back();
    stream.name = "history";
    stream.every_steps = 1;
    stream.rotation = 5;
    stream.fields.emplace_back();
    setup_.layout.streams.emplace_back();
    setup_.layout.streams.back().fields.columns.emplace_back();
    flow_ = std::make_unique<Flow>(setup_, 0);
  }
  // One step; the frame as it is handed over.
  const Flow::Held& hand_over(const std::vector<int>& alive) {
    flow_->begin(60.0 * static_cast<double>(steps_), steps_);
    ++steps_;
    const int group = flow_->group(alive);
    flow_->held.push_back({flow_->frame(), group, {}, nullptr, false});
    flow_->end();
    return flow_->held.back();
  }

  output::Setup setup_;
  std::unique_ptr<Flow> flow_;
  int64_t steps_ = 0;
  const std::vector<int> all_ = {0, 1, 2};
};

TEST_F(FlowTest, a_file_stays_with_its_group_when_another_one_is_lost) {
  for (int frame = 0; frame < 7; ++frame) hand_over(all_);  // two frames of file 1, which group 1 has
  flow_->pass_on({0}, {1, 2});
  const Flow::Held& next = hand_over({1, 2});
  EXPECT_EQ(next.group, 1);
  EXPECT_EQ(next.frame.generation, 0);
  EXPECT_EQ(next.frame.lonlat, 0);
}

TEST_F(FlowTest, frames_and_file_of_a_lost_group_go_on_as_a_generation_of_their_own) {
  for (int frame = 0; frame < 3; ++frame) hand_over(all_);
  flow_->released(0, 0, true);
  flow_->pass_on({0}, {1, 2});
  EXPECT_EQ(flow_->held[1].group, 1);
  EXPECT_EQ(flow_->held[1].frame.generation, 1);
  EXPECT_EQ(flow_->held[1].frame.source, 0);
  EXPECT_EQ(flow_->held[1].frame.written, 1);
  EXPECT_EQ(flow_->held[1].frame.lonlat, 1);
  EXPECT_EQ(flow_->held[2].frame.lonlat, 0);
  const Flow::Held& next = hand_over({1, 2});
  EXPECT_EQ(next.group, 1);
  EXPECT_EQ(next.frame.generation, 1);
}

TEST_F(FlowTest, a_group_that_was_given_up_releases_nothing) {
  hand_over(all_);
  flow_->pass_on({0}, {1, 2});
  flow_->released(0, 0, true);
  EXPECT_FALSE(flow_->held[0].released);
  flow_->released(0, 1, true);
  EXPECT_TRUE(flow_->held[0].released);
}

TEST_F(FlowTest, what_is_written_of_a_file_is_known_while_the_next_one_is_written_too) {
  for (int frame = 0; frame < 6; ++frame) hand_over(all_);
  for (int frame = 0; frame < 4; ++frame) flow_->released(frame, 0, true);
  flow_->released(5, 1, true);  // of the next file, by its group
  flow_->pass_on({0}, {1, 2});
  EXPECT_EQ(flow_->held[4].frame.file, 0);
  EXPECT_EQ(flow_->held[4].frame.written, 4);
}

}  // namespace
}  // namespace weir::output
