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
    flow_->held.push_back({flow_->frame(), group, {}, nullptr, false, {}});
    flow_->end();
    return flow_->held.back();
  }

  output::Setup setup_;
  std::unique_ptr<Flow> flow_;
  int64_t steps_ = 0;
  const std::vector<int> all_ = {0, 1, 2};
};

TEST_F(FlowTest, a_file_stays_with_its_group_when_another_one_is_lost) {
  for (int frame = 0; frame < 7; ++frame)
    hand_over(all_);  // two frames of file 1, which group 1 has
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

// Days of a year from 28 February 2000 on, a frame a day; which of them are the last of their file,
// and their files.
class MonthlyTest : public FlowTest {
 protected:
  MonthlyTest() {
    setup_.catalogue.reference = "2000-02-28";
    setup_.catalogue.calendar = "standard";
    Stream& stream = setup_.catalogue.streams.back();
    stream.rotation = 0;
    stream.every_s = 86400;
    stream.period = Period::kMonth;
  }
  void run(int days) {
    for (int step = 0; step < 2 * days; ++step) {
      flow_->begin(43200.0 * step, step);
      if (!flow_->active()) continue;
      if (flow_->due()) files_.push_back(flow_->frame().file);
      if (flow_->due() && flow_->frame().last) last_.push_back(step / 2);
      if (flow_->due() && flow_->frame().record == 0)
        begins_.push_back(flow_->frame().file_time_s / 86400);
      (void)flow_->group(all_);
      flow_->end();
    }
  }
  std::vector<int> last_;
  std::vector<int64_t> files_;
  std::vector<double> begins_;
};

TEST_F(MonthlyTest, a_file_ends_with_the_last_multiple_in_its_period) {
  run(70);
  EXPECT_EQ(last_, (std::vector<int>{1, 32, 62}));  // 29 February, 31 March, 30 April
  EXPECT_EQ(begins_, (std::vector<double>{0, 2, 33, 63}));
}

TEST_F(MonthlyTest, an_interval_belongs_to_the_file_in_which_it_begins) {
  setup_.catalogue.streams.back().fields.back().operation = WEIR_MEAN;
  setup_.layout.streams.back().fields.columns.back().operation = WEIR_MEAN;
  run(70);
  EXPECT_EQ(last_,
            (std::vector<int>{2, 33, 63}));  // the mean of 29 February is that of 1 March, 00:00
  EXPECT_EQ(begins_, (std::vector<double>{0, 2, 33, 63}));
  EXPECT_EQ(files_[0], 0);
  EXPECT_EQ(files_[1], 0);
  EXPECT_EQ(files_[2], 1);
}

TEST_F(FlowTest, the_first_step_has_no_interval_and_no_frame) {
  setup_.catalogue.streams.back().fields.back().operation = WEIR_MEAN;
  flow_->begin(120, 0);
  EXPECT_FALSE(flow_->active());
  EXPECT_FALSE(flow_->wants(0));
  flow_->begin(180, 1);
  EXPECT_TRUE(flow_->due());
  EXPECT_EQ(flow_->frame().begin_s, 120);
  EXPECT_EQ(flow_->frame().previous_s, 120);
  EXPECT_EQ(flow_->frame().number, 0);
}

}  // namespace
}  // namespace weir::output
