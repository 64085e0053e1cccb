// SPDX-License-Identifier: Apache-2.0
// Calls of the cache that are stopped or killed between any two of their instructions.
#include <signal.h>
#include <sys/ptrace.h>

#include "layers/cache/slots.h"
#include "layers/cache/ranks_test.h"

namespace weir::cache {
namespace {

// A rank that is stopped between any two instructions of a call, by its parent.
class SteppedTest : public CacheTest {
 protected:
  static constexpr long kEnd = 1L << 40;
  static void begin_steps() {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    ::raise(SIGSTOP);
  }
  // Takes so many of its steps; how many it took until it ended.
  static long step(pid_t rank, long steps) {
    return step(rank, steps, [] {});
  }
  template <typename After>
  static long step(pid_t rank, long steps, After after_each) {
    int status = 0;
    if (waitpid(rank, &status, 0) != rank || !WIFSTOPPED(status)) _exit(90);
    for (long n = 0; n < steps; ++n) {
      ptrace(PTRACE_SINGLESTEP, rank, nullptr, nullptr);
      if (waitpid(rank, &status, 0) != rank || !WIFSTOPPED(status)) return n;
      after_each();
    }
    return steps;
  }
  static int kills() {
    const char* given = getenv("WEIR_TEST_KILLS");
    return given != nullptr ? atoi(given) : 8;
  }
  void drain_dead() {
    char command[512];
    snprintf(command, sizeof command, "%s --wait /dev/shm/weir.%d.%s/0", WEIR_DRAIN_PROGRAM,
             static_cast<int>(geteuid()), getenv("WEIR_JOB"));
    if (system(command) != 0) _exit(91);
  }
  // Runs the body for steps all over a call: first for all of them, which says how many there are.
  template <typename Body>
  void at_steps(Body body) {
    body(kEnd);
    const long all = shared_->counts[63][0];
    ASSERT_GT(all, 500);
    for (int i = 0; i < kills() && !HasFatalFailure(); ++i) {
      const long step = all * (2 * i + 1) / (2 * kills());
      SCOPED_TRACE(step);
      memset(shared_, 0, sizeof *shared_);
      ASSERT_EQ(0, ftruncate(fd_, 0));
      body(step);
    }
  }
};

TEST_F(SteppedTest, who_is_killed_in_a_write_past_the_cache_leaves_no_older_bytes_for_the_daemon) {
  at_steps([&](long steps) {
    const pid_t parent = start([&] {
      const pid_t rank = start([&] {
        Rank t{shared_, -1};
        const std::vector<char> data(100, 'a'), newer(100, 'b');
        if (!t.open(path_, {16384, 8}, 0) || cache::write(t.o, data.data(), 100, 0) != 100)
          _exit(3);
        t.o.unprotected = true;  // what it writes now goes past the cache
        t.after_write = [](Rank& own) { own.shared->go += 1; };
        begin_steps();
        cache::write(t.o, newer.data(), 100, 50);
      });
      shared_->counts[63][0] = static_cast<uint64_t>(step(rank, steps));
      kill(rank, SIGKILL);
      waitpid(rank, nullptr, 0);
      drain_dead();
    });
    wait_for(parent);
    char got[150];
    const ssize_t n = pread(fd_, got, sizeof got, 0);
    ASSERT_TRUE(n == 100 || n == 150) << n;
    for (int i = 0; i < 50; ++i) ASSERT_EQ('a', got[i]) << i;
    for (int i = 50; i < n; ++i) ASSERT_TRUE(got[i] == 'b' || (n == 100 && got[i] == 'a')) << i;
    ASSERT_TRUE(shared_->go < 2 || n == 150) << n;
  });
}

// Blocks of slots that somebody has locked, as a reader finds them that takes no lock.
void read_locked_blocks(Rank& t) {
  const Cache& c = *t.o.cache;
  for (uint32_t i = 0; i < c.slots; ++i) {
    const Slot& s = c.slot(i);
    const uint64_t tag = base::load(&s.tag);
    if (base::load(&s.lock.word) == 0 || tag == 0 || base::load(&s.state) != kWhole) continue;
    char piece[100] = {};
    const uint64_t at = block_of(tag) * c.block_bytes + 1000;
    bool same = cache::read(t.o, piece, sizeof piece, at) == sizeof piece;
    for (uint64_t k = 0; k < sizeof piece; ++k)
      same = same && piece[k] == CacheTest::byte_at(at + k);
    base::fetch_add(&t.shared->arrived, 1u);
    if (!same) base::fetch_add(&t.shared->wrong, 1u);
  }
}

TEST_F(SteppedTest, a_block_is_read_right_at_every_instruction_of_who_takes_its_slot) {
  setenv("WEIR_LOCK_WAIT_MS", "5", 1);
  fill(9 * 16384);
  const pid_t parent = start([&] {
    const pid_t rank = start([&] {
      Rank t{shared_, -1};
      char piece[100];
      if (!t.open(path_, {16384, 8}, 0)) _exit(3);
      base::store(&shared_->go, 1u);
      begin_steps();
      if (cache::read(t.o, piece, sizeof piece, 8 * 16384) != sizeof piece) _exit(4);
      _exit(0);
    });
    Rank t{shared_, -1};
    char piece[100];
    const char last = byte_at(9 * 16384 - 1);
    while (base::load(&shared_->go) == 0) usleep(200);
    if (!t.open(path_, {16384, 8}, 1) || cache::write(t.o, &last, 1, 9 * 16384 - 1) != 1 ||
        flush(t.o, false) != 0)
      _exit(5);
    for (uint64_t block = 0; block < 8; ++block) {
      if (cache::read(t.o, piece, sizeof piece, block * 16384) != sizeof piece) _exit(6);
    }
    step(rank, kEnd, [&] { read_locked_blocks(t); });
    t.finish();
  });
  wait_for(parent);
  EXPECT_GT(shared_->arrived, 0u);
  EXPECT_EQ(0u, shared_->wrong);
}

TEST_F(SteppedTest, who_is_stopped_in_writing_a_block_never_brings_older_bytes_over_newer_ones) {
  setenv("WEIR_LOCK_WAIT_MS", "5", 1);
  for (const bool is_killed : {true, false}) {
    SCOPED_TRACE(is_killed);
    at_steps([&](long steps) {
      const pid_t parent = start([&] {
        const pid_t rank = start([&] {
          Rank t{shared_, -1};
          const std::vector<char> data(100, 'a');
          if (!t.open(path_, {16384, 8}, 0) || cache::write(t.o, data.data(), 100, 0) != 100)
            _exit(3);
          begin_steps();
          flush(t.o, false);
          if (steps != kEnd) t.finish();
        });
        shared_->counts[63][0] = static_cast<uint64_t>(step(rank, steps));
        if (steps == kEnd) _exit(0);
        Rank t{shared_, -1};
        const std::vector<char> newer(60, 'b');
        if (!t.open(path_, {16384, 8}, 1)) _exit(4);
        if (cache::write(t.o, newer.data(), 60, 70) != 60) _exit(5);
        char piece[200];
        if (cache::read(t.o, piece, 200, 0) != 130 || piece[69] != 'a' || piece[70] != 'b')
          _exit(6);
        if (is_killed) kill(rank, SIGKILL);
        else ptrace(PTRACE_DETACH, rank, nullptr, nullptr);
        t.finish();
        int status = -1;
        waitpid(rank, &status, 0);
        if (status != (is_killed ? SIGKILL : 0)) _exit(7);
        drain_dead();
      });
      wait_for(parent);
      if (steps == kEnd) return;
      char got[130];
      ASSERT_EQ(130, pread(fd_, got, 130, 0));
      for (int i = 0; i < 130; ++i) ASSERT_EQ(i < 70 ? 'a' : 'b', got[i]) << i;
    });
  }
}

// A rank is stopped in a write of whole blocks, which one request takes to the file. Meanwhile
// another one reads them and writes into one.
TEST_F(SteppedTest, a_large_write_is_there_whatever_is_read_and_written_before_it_ends) {
  constexpr uint64_t kBlock = 16384, kBytes = 4 * kBlock, kAt = kBlock + 100, kPart = 60;
  setenv("WEIR_LOCK_WAIT_MS", "5", 1);
  at_steps([&](long steps) {
    const pid_t parent = start([&] {
      const std::vector<char> old(kBytes, 'a'), large(kBytes, 'b'), part(kPart, 'c');
      if (pwrite(fd_, old.data(), kBytes, 0) != static_cast<ssize_t>(kBytes)) _exit(2);
      const pid_t rank = start([&] {
        Rank t{shared_, -1};
        if (!t.open(path_, {kBlock, 8}, 0)) _exit(3);
        begin_steps();
        if (cache::write(t.o, large.data(), kBytes, 0) != static_cast<int64_t>(kBytes)) _exit(4);
        if (steps != kEnd) t.finish();
      });
      Rank t{shared_, -1};
      std::vector<char> got(kBytes), file(kBytes);
      if (!t.open(path_, {kBlock, 8}, 1)) _exit(5);
      if (cache::read(t.o, got.data(), kBytes, 0) != static_cast<int64_t>(kBytes)) _exit(6);
      shared_->counts[63][0] = static_cast<uint64_t>(step(rank, steps));
      if (steps == kEnd) _exit(0);
      if (cache::read(t.o, got.data(), kBytes, 0) != static_cast<int64_t>(kBytes)) _exit(7);
      for (const char c : got) {
        if (c != 'a' && c != 'b') _exit(8);
      }
      if (cache::write(t.o, part.data(), kPart, kAt) != static_cast<int64_t>(kPart)) _exit(9);
      if (cache::read(t.o, got.data(), kPart, kAt) != static_cast<int64_t>(kPart)) _exit(10);
      ptrace(PTRACE_DETACH, rank, nullptr, nullptr);
      int status = -1;
      waitpid(rank, &status, 0);
      if (status != 0) _exit(11);
      if (cache::read(t.o, got.data(), kBytes, 0) != static_cast<int64_t>(kBytes)) _exit(12);
      const char either = got[kAt];
      if (either != 'b' && either != 'c') _exit(13);
      for (uint64_t i = 0; i < kBytes; ++i) {
        if (got[i] != (i >= kAt && i < kAt + kPart ? either : 'b')) _exit(14);
      }
      t.finish();
      if (pread(fd_, file.data(), kBytes, 0) != static_cast<ssize_t>(kBytes)) _exit(15);
      if (file != got) _exit(16);
    });
    wait_for(parent);
  });
}

}  // namespace
}  // namespace weir::cache
