// SPDX-License-Identifier: Apache-2.0
#include "base/section.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "base/credentials.h"

namespace weir::base {
namespace {

bool is_blocked() {
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  return sigismember(&now, SIGUSR1) == 1;
}

// Nothing makes handlers "may come" 0 again but a new process.
class Sections : public testing::Test {
 protected:
  void SetUp() override { store(&handlers_may_come, 0u); }
  void TearDown() override { forget_sections(); }
};

TEST_F(Sections, hold_back_no_signals_while_there_are_no_handlers) {
  const Section section;
  EXPECT_FALSE(is_blocked());
  EXPECT_EQ(sections_begun, 1u);
  const Section within;
  EXPECT_EQ(sections_begun, 1u);
}

TEST_F(Sections, hold_back_signals_when_there_is_a_handler) {
  before_handler(SIGUSR1);
  {
    const Section section;
    EXPECT_TRUE(is_blocked());
    EXPECT_EQ(sections_begun, 0u);
  }
  EXPECT_FALSE(is_blocked());
}

TEST_F(Sections, go_on_as_they_were_for_handlers_of_faults) {
  before_handler(SIGSEGV);
  before_handler(SIGABRT);
  const Section section;
  EXPECT_FALSE(is_blocked());
}

TEST_F(Sections, are_waited_for_before_the_first_handler) {
  uint32_t stage = 0;
  std::thread other([&] {
    const Section section;
    store(&stage, 1u);
    while (load(&stage) != 2) yield();
  });
  while (load(&stage) != 1) yield();
  std::thread sets([] { before_handler(SIGUSR1); });
  while (load_all(&handlers_may_come) == 0) yield();
  store(&stage, 2u);
  other.join();
  sets.join();
  EXPECT_EQ(load(&sections_begun), 0u);
}

TEST_F(Sections, let_go_of_signals_for_a_call_of_the_program) {
  const Section section;
  {
    const SignalsAsBefore as_before;
    EXPECT_EQ(sections_begun, 0u);
    before_handler(SIGUSR1);  // another thread's; from here on they are held back
  }
  EXPECT_TRUE(is_blocked());
}

TEST_F(Sections, that_were_begun_without_handlers_end_with_signals_let_go) {
  {
    const Section section;
    const SignalsAsBefore as_before;
    before_handler(SIGUSR1);
  }
  EXPECT_FALSE(is_blocked());
  EXPECT_EQ(sections_begun, 0u);
}

TEST_F(Sections, within_signals_held_back_begin_nothing) {
  const SignalsBlocked blocked;
  const Section section;
  EXPECT_EQ(sections_begun, 0u);
}

TEST(Acting, is_asked_again_after_a_change_alone) {
  const Acting before = acting(true);
  EXPECT_EQ(before.user, geteuid());
  EXPECT_EQ(before.group, getegid());
  if (before.user != 0) GTEST_SKIP() << "needs root";
  ASSERT_EQ(system_call(SYS_setresuid, -1, 12, -1), 0);  // of this thread alone, and unseen
  EXPECT_EQ(acting(true).user, 0u);
  credentials_change();
  EXPECT_EQ(acting(false).user, 12u);
  EXPECT_EQ(acting(true).user, 12u);
  ASSERT_EQ(system_call(SYS_setresuid, -1, 0, -1), 0);
  credentials_change();
  EXPECT_EQ(acting(true).user, 0u);
}

}  // namespace
}  // namespace weir::base
