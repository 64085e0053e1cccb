// SPDX-License-Identifier: Apache-2.0
#include "base/atomic.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>

#include <thread>
#include <vector>

namespace weir::base {
namespace {

TEST(Atomic, additions_of_threads_are_not_lost) {
  uint64_t sum = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50000; ++i) fetch_add(&sum, uint64_t{1});
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(load(&sum), 200000u);
}

TEST(Atomic, compare_exchange_says_what_was_there) {
  uint32_t value = 5, expected = 4;
  EXPECT_FALSE(compare_exchange(&value, &expected, 9u));
  EXPECT_EQ(expected, 5u);
  EXPECT_TRUE(compare_exchange(&value, &expected, 9u));
  EXPECT_EQ(value, 9u);
  EXPECT_EQ(exchange(&value, 1u), 9u);
}

TEST(OwnAtomic, returns_the_old_value) {
  uint64_t value = UINT64_C(0xffffffff);
  EXPECT_EQ(own_fetch_add(&value, 2), UINT64_C(0xffffffff));
  own_add(&value, 1);
  EXPECT_EQ(value, UINT64_C(0x100000002));
}

uint64_t shared_with_handler;
volatile sig_atomic_t handled;

void add_in_handler(int) {
  own_add(&shared_with_handler, 1);
  own_fetch_add(&shared_with_handler, 1);
  handled = handled + 1;
}

// The handler interrupts between any two instructions: an addition in two of them would lose one of
// the handler's.
TEST(OwnAtomic, additions_survive_signal_handlers_of_the_thread) {
  struct sigaction action = {}, before = {};
  action.sa_handler = add_in_handler;
  action.sa_flags = SA_RESTART;
  ASSERT_EQ(sigaction(SIGALRM, &action, &before), 0);
  const itimerval every = {{0, 20}, {0, 20}}, never = {};
  shared_with_handler = 0;
  handled = 0;
  uint64_t own = 0;
  setitimer(ITIMER_REAL, &every, nullptr);
  while (handled < 200) {
    own_add(&shared_with_handler, 1);
    own_fetch_add(&shared_with_handler, 1);
    own += 2;
  }
  setitimer(ITIMER_REAL, &never, nullptr);
  signal(SIGALRM, SIG_IGN);
  EXPECT_EQ(shared_with_handler, own + 2 * static_cast<uint64_t>(handled));
  sigaction(SIGALRM, &before, nullptr);
}

}  // namespace
}  // namespace weir::base
