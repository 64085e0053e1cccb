// SPDX-License-Identifier: Apache-2.0
#include "output/engine/alive.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include "output/engine/job_of_threads.h"

namespace weir::output {
namespace {

// The rank 1 is the given process of this node.
class Beside : public ThreadWorld {
 public:
  Beside(Job& job, base::ProcessIdentity other)
      : ThreadWorld(job, 0), sites_{Site{0, base::self()}, Site{0, other}} {}
  const std::vector<Site>& sites() const override { return sites_; }

 private:
  std::vector<Site> sites_;
};

bool counts_as_gone(base::ProcessIdentity other) {
  Job job(2, 1);
  Beside world(job, other);
  return is_gone(world, 1);
}

TEST(Alive, a_later_process_of_the_same_number_is_not_the_rank) {
  base::ProcessIdentity later = base::self();
  EXPECT_FALSE(counts_as_gone(later));
  later.start ^= 1;
  EXPECT_TRUE(counts_as_gone(later));
}

TEST(Alive, a_process_of_another_namespace_is_not_looked_up_by_its_number_here) {
  base::ProcessIdentity foreign = base::self();
  foreign.start ^= 1u << 20;
  EXPECT_FALSE(counts_as_gone(foreign));
}

TEST(Alive, a_zombie_is_gone) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t ended;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  const auto pid = static_cast<uint32_t>(child);
  EXPECT_TRUE(counts_as_gone({pid, base::start_of(pid)}));
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(counts_as_gone({pid, 0}));
}

}  // namespace
}  // namespace weir::output
