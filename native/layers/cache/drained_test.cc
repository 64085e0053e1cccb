// SPDX-License-Identifier: Apache-2.0
// The write-back daemon beside ranks that go on.
#include <signal.h>

#include "layers/cache/ranks_test.h"

namespace weir::cache {
namespace {

// As a network: the bytes leave the process when the request is made, and arrive when it may go on.
int64_t arrive_late(void* context, const iovec* pieces, int count, uint64_t bytes,
                    uint64_t offset) {
  auto& t = *static_cast<Rank*>(context);
  std::vector<char> sent;
  for (int i = 0; i < count; ++i) {
    const char* const from = static_cast<const char*>(pieces[i].iov_base);
    sent.insert(sent.end(), from, from + pieces[i].iov_len);
  }
  uint32_t nobody = 0;
  base::compare_exchange(&t.shared->go, &nobody, 1u);
  while (base::load(&t.shared->go) != 2) usleep(200);
  return pwrite(t.fd, sent.data(), bytes, static_cast<off_t>(offset));
}

TEST_F(CacheTest, bytes_of_a_dead_rank_arrive_after_those_that_they_replaced) {
  const pid_t writer = start([&] {
    Rank t{shared_, -1};
    const std::vector<char> data(100, 'a');
    if (!t.open(path_, {16384, 8}, 0) || cache::write(t.o, data.data(), 100, 0) != 100) _exit(3);
    t.o.below.write = arrive_late;
    if (flush(t.o, false) != 0) _exit(4);
    t.finish();
  });
  while (base::load(&shared_->go) == 0) usleep(200);
  const pid_t dead = start([&] {
    Rank t{shared_, -1};
    const std::vector<char> data(60, 'd');
    if (!t.open(path_, {16384, 8}, 1) || cache::write(t.o, data.data(), 60, 20) != 60) _exit(5);
    ::raise(SIGKILL);
  });
  wait_for(dead, SIGKILL);
  char got[100];
  // a daemon that does not wait for the request has written them by then
  for (int i = 0; i < 100 && (pread(fd_, got, 1, 20) != 1 || got[0] != 'd'); ++i) usleep(5000);
  base::store(&shared_->go, 2u);
  wait_for(writer);
  ASSERT_EQ(100, pread(fd_, got, 100, 0));
  for (int i = 0; i < 100; ++i) ASSERT_EQ(i < 20 || i >= 80 ? 'a' : 'd', got[i]) << i;
}

}  // namespace
}  // namespace weir::cache
