// SPDX-License-Identifier: Apache-2.0
// Two ranks over a world that refuses some sends, delivers some messages twice, and some after
// later ones: all come once and in order.
#include "output/transport/reliable.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace weir::output {
namespace {

using Box = std::deque<Message>;

class UnsteadyWorld : public World {
 public:
  UnsteadyWorld(Box& mine, Box& theirs, unsigned seed)
      : mine_(mine), theirs_(theirs), random_(seed), team_(lone_team()) {}
  Team& team() override { return *team_; }
  const std::vector<Site>& sites() const override { return sites_; }
  void set_time_limit(double) override {}
  double time_limit() const override { return limit_s; }
  Status send(int, std::span<const char> bytes) override {
    if (broken || random_() % 4 == 0) return {WEIR_E_MPI, "made to fail"};
    const size_t back = random_() % 3;  // that many places before the end
    for (unsigned copies = 1 + random_() % 2; copies > 0; --copies) {
      theirs_.insert(theirs_.end() - static_cast<long>(std::min(back, theirs_.size())),
                     {0, {bytes.begin(), bytes.end()}});
    }
    return {};
  }
  Result<std::optional<Message>> receive() override {
    if (random_() % 4 == 0) return Status{WEIR_E_MPI, "made to fail"};
    if (mine_.empty()) return std::optional<Message>();
    Message first = std::move(mine_.front());
    mine_.pop_front();
    return std::optional<Message>(std::move(first));
  }
  std::unique_ptr<Flight> flight(int) override { return nullptr; }
  std::unique_ptr<Agreement> agreement(Team&) override { return nullptr; }
  Result<std::unique_ptr<Window>> window(void*, int64_t) override {
    return Status{WEIR_E_INTERNAL, "not part of this test"};
  }
  Result<bool> fetches_progress() override { return false; }

  double limit_s = 60;
  bool broken = false;

 private:
  Box &mine_, &theirs_;
  std::minstd_rand random_;
  std::vector<Site> sites_;
  std::unique_ptr<Team> team_;
};

TEST(reliable, messages_come_once_and_in_order_though_calls_fail) {
  constexpr int kMessages = 1000;
  for (unsigned seed = 1; seed <= 5; ++seed) {
    Box here, there;
    UnsteadyWorld sending(here, there, seed), receiving(there, here, seed + 100);
    ReliableWorld sender(sending), receiver(receiving);
    int received = 0;
    for (int sent = 0; received < kMessages;) {
      if (sent < kMessages) {
        const std::string text = std::to_string(sent++);
        ASSERT_TRUE(sender.send(1, text).ok());
      } else {
        ASSERT_TRUE(sender.receive().ok());  // what could not be sent is sent here
      }
      const Result<std::optional<Message>> message = receiver.receive();
      ASSERT_TRUE(message.ok());
      if (!(*message).has_value()) continue;
      ASSERT_EQ(std::string((**message).bytes.begin(), (**message).bytes.end()),
                std::to_string(received++))
          << "seed " << seed;
    }
  }
}

TEST(reliable, a_rank_to_which_nothing_can_be_sent_is_an_error_after_the_time_limit) {
  Box here, there;
  UnsteadyWorld world(here, there, 1);
  ReliableWorld sender(world);
  world.broken = true;
  EXPECT_TRUE(sender.send(1, std::string("a")).ok());
  world.limit_s = 0;
  EXPECT_EQ(sender.flush().code(), WEIR_E_MPI);
  EXPECT_EQ(sender.send(1, std::string("b")).code(), WEIR_E_MPI);
  world.limit_s = 60;
  world.broken = false;
  EXPECT_TRUE(sender.flush().ok());
  EXPECT_GE(there.size(), 2U);
}

}  // namespace
}  // namespace weir::output
