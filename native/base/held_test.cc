// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>

#include <thread>

#include "base/syscall.h"

namespace weir::base {
namespace {

sigjmp_buf away;

void jump(int) { siglongjmp(away, 1); }

void leave_by_jump() {
  struct sigaction action {};
  action.sa_handler = jump;
  sigaction(SIGUSR1, &action, nullptr);
  if (sigsetjmp(away, 1) == 0) {
    const HoldsDescriptor held;
    raise(SIGUSR1);
  }
}

class HeldInVain : public testing::Test {
 protected:
  void TearDown() override { forget_held(); }
};

TEST_F(HeldInVain, a_holder_that_a_jump_left_is_waited_for_once) {
  std::thread(leave_by_jump).join();
  EXPECT_TRUE(any_held());
  EXPECT_GT(wait_for_held(), 0u);
  EXPECT_FALSE(any_held());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(wait_for_held(), 0u);
  { const ClosesNumbers closes(true); }
  EXPECT_FALSE(any_held());
}

TEST_F(HeldInVain, later_holders_are_waited_for_all_the_same) {
  std::thread(leave_by_jump).join();
  wait_for_held();
  {
    const HoldsDescriptor held;
    EXPECT_TRUE(any_held());
  }
  EXPECT_FALSE(any_held());
  EXPECT_EQ(descriptors_held, 1u);
  EXPECT_EQ(held_in_vain, 1u);
}

TEST_F(HeldInVain, a_slow_holder_that_ends_is_taken_off_the_count) {
  {
    const HoldsDescriptor slow;
    EXPECT_GT(wait_for_held(), 0u);
    EXPECT_FALSE(any_held());
  }
  EXPECT_EQ(held_in_vain, 0u);
  const HoldsDescriptor held;
  EXPECT_TRUE(any_held());
}

}  // namespace
}  // namespace weir::base
