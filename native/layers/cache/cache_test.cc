// SPDX-License-Identifier: Apache-2.0
// The cache between processes: what each rank reads is right, each block is asked for once, killed
// ranks hold up nobody.
#include "layers/cache/cache.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "layers/cache/between.h"
#include "layers/cache/slots.h"
#include "layers/cache/ranks_test.h"
#include "layers/writeback/client.h"
#include "layers/writeback/format.h"
#include "layers/machinery/node/place.h"
#include "base/syscall.h"

namespace weir::cache {
namespace {

TEST_F(CacheTest, each_block_is_read_once_by_ranks_in_step) {
  constexpr uint64_t kBytes = 4 << 20;
  fill(kBytes - 100);
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    children.push_back(start([&, i] {
      Rank t{shared_, -1};
      if (!t.open(path_, {65536, 16 * 8}, i)) _exit(3);
      meet(shared_, 8);
      char piece[1000];
      for (uint64_t at = 0; at < kBytes - 100;) {
        const int64_t n = cache::read(t.o, piece, sizeof piece, at);
        if (n <= 0) _exit(4);
        for (int64_t k = 0; k < n; ++k) {
          if (piece[k] != byte_at(at + k)) _exit(5);
        }
        at += n;
      }
      if (cache::read(t.o, piece, sizeof piece, kBytes - 100) != 0) _exit(6);
      t.finish();
    }));
  }
  for (pid_t c : children) wait_for(c);
  EXPECT_LE(shared_->reads,
            kBytes / 65536 + 1);  // the last block twice: a short read asks whether that was all
  uint64_t loads = 0;
  for (auto& counts : shared_->counts) loads += counts[kLoads];
  EXPECT_EQ(kBytes / 65536, loads);
}

TEST_F(CacheTest, a_small_ring_serves_ranks_that_keep_together) {
  constexpr uint64_t kBytes = 2 << 20;
  fill(kBytes);
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(start([&, i] {
      Rank t{shared_, -1};
      if (!t.open(path_, {16384, 8}, i)) _exit(3);
      char piece[4096];
      for (uint64_t at = 0; at < kBytes; at += sizeof piece) {
        if (at % 65536 == 0) meet(shared_, 4 * (at / 65536 + 1));
        if (cache::read(t.o, piece, sizeof piece, at) != sizeof piece) _exit(4);
        if (piece[1] != byte_at(at + 1) || piece[4095] != byte_at(at + 4095)) _exit(5);
      }
      t.finish();
    }));
  }
  for (pid_t c : children) wait_for(c);
  EXPECT_EQ(kBytes / 16384, shared_->reads);
}

TEST_F(CacheTest, of_blocks_touched_at_one_time_the_first_makes_room) {
  fill(1 << 20);
  const pid_t child = start([&] {
    Rank t{shared_, -1};
    if (!t.open(path_, {16384, 8}, 0)) _exit(3);
    char piece[100];
    const auto read_block = [&](uint64_t block) {
      if (cache::read(t.o, piece, sizeof piece, block * 16384) != sizeof piece) _exit(4);
    };
    for (uint64_t block = 0; block < 9; ++block)
      read_block(block);  // block 8 in the place of block 0
    for (uint64_t block = 1; block < 9; ++block) read_block(block);  // all of them since
    read_block(9);
    read_block(8);
    t.finish();
  });
  wait_for(child);
  EXPECT_EQ(10u, shared_->reads);
}

void await_go(Shared* shared, uint32_t value) {
  for (int i = 0; i < 50'000 && base::load(&shared->go) < value; ++i) usleep(200);
  if (base::load(&shared->go) < value) _exit(7);
}

// One piece of each fourth block: while another rank reads the block, that of the next step is
// read.
TEST_F(CacheTest, who_waits_in_steps_reads_the_block_of_the_next_step) {
  static constexpr uint32_t kBlock = 16384;
  fill(uint64_t{64} * kBlock);
  const pid_t waiting = start([&] {
    Rank t{shared_, -1};
    if (!t.open(path_, {kBlock, 64}, 0)) _exit(3);
    char piece[100];
    for (uint64_t block = 0; block <= 12; block += 4) {
      if (block == 12) {
        base::store(&shared_->go, 1u);
        await_go(shared_, 2);
        t.before_read = [](Rank& rank, uint64_t offset) {
          if (offset == 16 * kBlock) base::store(&rank.shared->go, 3u);
        };
      }
      if (cache::read(t.o, piece, sizeof piece, block * kBlock + 50) != sizeof piece) _exit(4);
      if (piece[9] != byte_at(block * kBlock + 59)) _exit(5);
    }
    t.finish();
  });
  const pid_t reading = start([&] {
    Rank t{shared_, -1};
    if (!t.open(path_, {kBlock, 64}, 1)) _exit(3);
    t.before_read = [](Rank& rank, uint64_t) {
      base::store(&rank.shared->go, 2u);
      await_go(rank.shared, 3);
    };
    await_go(shared_, 1);
    char piece[100];
    if (cache::read(t.o, piece, sizeof piece, 12 * kBlock) != sizeof piece) _exit(4);
    t.finish();
  });
  wait_for(waiting);
  wait_for(reading);
  EXPECT_LE(shared_->counts[0][kWaits], 1u);
  EXPECT_LE(shared_->reads, 6u) << "those of blocks 0, 4, 8, 12, and of two steps ahead at most";
}

TEST_F(CacheTest, a_block_whose_reader_was_killed_is_read_by_another) {
  fill(1 << 20);
  const pid_t victim = start([&] {
    Rank t{shared_, -1};
    if (!t.open(path_, {65536, 8}, 0)) _exit(3);
    t.before_read = [](Rank& rank, uint64_t) {
      base::store(&rank.shared->go, 1u);
      for (;;) pause();
    };
    char piece[100];
    cache::read(t.o, piece, sizeof piece, 0);
  });
  while (base::load(&shared_->go) == 0) usleep(100);
  std::vector<pid_t> children;
  for (int i = 1; i < 4; ++i) {
    children.push_back(start([&, i] {
      Rank t{shared_, -1};
      if (!t.open(path_, {65536, 8}, i)) _exit(3);
      meet(shared_, 3);
      char piece[100];
      if (cache::read(t.o, piece, sizeof piece, 200) != sizeof piece || piece[7] != byte_at(207))
        _exit(4);
      t.finish();
    }));
  }
  while (base::load(&shared_->arrived) < 3) usleep(100);
  usleep(20'000);
  kill(victim, SIGKILL);
  wait_for(victim, SIGKILL);
  for (pid_t c : children) wait_for(c);
  EXPECT_EQ(2u, shared_->first_reads);  // the dead one's and one more
  EXPECT_EQ(1u, shared_->counts[1][kTakenOver] + shared_->counts[2][kTakenOver] +
                    shared_->counts[3][kTakenOver]);
}

TEST_F(CacheTest, a_rank_that_hangs_while_reading_delays_others_for_a_bounded_time) {
  fill(1 << 20);
  const pid_t stuck = start([&] {
    Rank t{shared_, -1};
    if (!t.open(path_, {65536, 8}, 0)) _exit(3);
    t.before_read = [](Rank& rank, uint64_t) {
      base::store(&rank.shared->go, 1u);
      for (;;) pause();
    };
    char piece[100];
    cache::read(t.o, piece, sizeof piece, 0);
  });
  while (base::load(&shared_->go) == 0) usleep(100);
  const pid_t other = start([&] {
    Rank t{shared_, -1};
    if (!t.open(path_, {65536, 8}, 1)) _exit(3);
    char piece[100];
    if (cache::read(t.o, piece, sizeof piece, 300) != sizeof piece || piece[0] != byte_at(300))
      _exit(4);
    t.finish();
  });
  wait_for(other);
  EXPECT_EQ(1u, shared_->counts[1][kPassedOn]);
  kill(stuck, SIGKILL);
  wait_for(stuck, SIGKILL);
}

TEST_F(CacheTest, neighbouring_writes_of_several_ranks_become_whole_blocks) {
  constexpr uint32_t kRanks = 4, kPiece = 1000, kPieces = 2000;
  const pid_t parent = start([&] {
    std::vector<pid_t> children;
    for (uint32_t i = 0; i < kRanks; ++i) {
      children.push_back(start([&, i] {
        Rank t{shared_, -1};
        if (!t.open(path_, {65536, 16}, static_cast<int>(i), {true, false, 2'000'000'000}))
          _exit(3);
        meet(shared_, kRanks);
        char piece[kPiece];
        for (uint32_t n = 0; n < kPieces; ++n) {
          const uint64_t at = (uint64_t{n} * kRanks + i) * kPiece;
          for (uint32_t k = 0; k < kPiece; ++k) piece[k] = byte_at(at + k);
          if (cache::write(t.o, piece, kPiece, at) != kPiece) _exit(4);
        }
        t.finish();
      }));
    }
    for (pid_t c : children) {
      int status = -1;
      waitpid(c, &status, 0);
      if (status != 0) _exit(9);
    }
  });
  wait_for(parent);
  constexpr uint64_t kAll = uint64_t{kRanks} * kPiece * kPieces;
  std::vector<char> got(kAll);
  ASSERT_EQ(static_cast<ssize_t>(kAll), pread(fd_, got.data(), kAll, 0));
  for (uint64_t i = 0; i < kAll; ++i) ASSERT_EQ(byte_at(i), got[i]) << i;
  EXPECT_EQ(kAll, shared_->written_bytes);
  printf("%u requests for %u writes\n", shared_->writes, kRanks * kPieces);
  EXPECT_LE(shared_->writes, kAll / 65536 * 3 / 2);
}

TEST_F(CacheTest, what_one_rank_writes_another_reads_at_once) {
  const pid_t parent = start([&] {
    Rank t{shared_, -1};
    if (!t.open(path_, {16384, 8}, 0)) _exit(3);
    if (cache::write(t.o, "one", 3, 20'000) != 3) _exit(4);
    const pid_t child = start([&] {
      node::forked();
      Rank u{shared_, -1};
      if (!u.open(path_, {16384, 8}, 1)) _exit(5);
      char piece[10];
      if (cache::size(u.o) != 20'003) _exit(6);
      if (cache::read(u.o, piece, 10, 19'996) != 7 || memcmp(piece, "\0\0\0\0one", 7) != 0)
        _exit(7);
      if (cache::write(u.o, "two", 3, 20'003) != 3) _exit(8);
      u.finish();
    });
    int status = -1;
    waitpid(child, &status, 0);
    if (status != 0) _exit(10 + status / 256);
    char piece[10];
    if (cache::read(t.o, piece, 10, 20'000) != 6 || memcmp(piece, "onetwo", 6) != 0) _exit(9);
    t.finish();
  });
  wait_for(parent);
}

TEST_F(CacheTest, what_is_written_while_another_asks_for_the_size_is_not_past_the_end) {
  for (const bool at_open : {false, true}) {
    ASSERT_EQ(0, ftruncate(fd_, 0));
    wait_for(start([&] {
      Rank writer{shared_, -1}, reader{shared_, -1};
      if (!writer.open(path_, {65536, 8}, 0)) _exit(3);
      if (at_open) reader.writes_meanwhile = &writer;
      if (!reader.open(path_, {65536, 8}, 1)) _exit(4);
      reader.writes_meanwhile = &writer;
      if (!at_open) look_again(reader.o);
      reader.writes_meanwhile = nullptr;
      char found[8] = "";
      if (cache::read(reader.o, found, 5, 0) != 5 || strcmp(found, "bytes") != 0) _exit(5);
      reader.finish();
      writer.finish();
    }));
  }
}

TEST_F(CacheTest, a_failed_write_is_reported_to_every_writer_once_and_counted_once) {
  const pid_t parent = start([&] {
    Rank t{shared_, -1};
    if (!t.open(path_, {16384, 8}, 0)) _exit(3);
    Rank u{shared_, -1};
    if (!u.open(path_, {16384, 8}, 1)) _exit(3);
    t.fail_writes = ENOSPC;
    if (cache::write(t.o, "lost", 4, 100) != 4) {
      if (t.o.registered < 0)
        _exit(0);  // nobody to drain: nothing is accepted, nothing can be lost later
      _exit(4);
    }
    if (flush(t.o, false) != -ENOSPC || t.lost != 4) _exit(5);
    if (take_error(u.o) != -ENOSPC || take_error(u.o) != 0 || take_error(t.o) != 0) _exit(6);
    if (flush(t.o, false) != 0) _exit(8);
    t.fail_writes = 0;
    t.finish();
    u.finish();
  });
  wait_for(parent);
}

// Any sequence of reads and writes by openings of several kinds equals the same on an array.
TEST_F(CacheTest, random_operations_equal_those_on_an_array) {
  const char* given = getenv("WEIR_TEST_SEED");
  unsigned seed =
      given != nullptr ? static_cast<unsigned>(atoi(given)) : static_cast<unsigned>(getpid());
  printf("WEIR_TEST_SEED=%u\n", seed);
  for (const bool keeps : {true, false}) {
    const pid_t child = start([&] {
      Rank ranks[3]{{shared_, -1}, {shared_, -1}, {shared_, -1}};
      if (ftruncate(fd_, 0) != 0) _exit(2);
      for (int i = 0; i < 3; ++i) {
        if (!ranks[i].open(path_, {i == 2 ? 12'288u : 12'288u, 8}, i, {keeps, false, 1'000'000}))
          _exit(3);
      }
      constexpr uint64_t kMost = 300'000;
      std::vector<char> model(kMost + 50'000), got(50'000);
      uint64_t end = 0;
      for (int n = 0; n < 40'000; ++n) {
        Rank& t = ranks[rand_r(&seed) % 3];
        const uint64_t at = rand_r(&seed) % kMost;
        const uint32_t bytes =
            rand_r(&seed) % 20 == 0 ? 1 + rand_r(&seed) % 40'000 : 1 + rand_r(&seed) % 300;
        const unsigned what = rand_r(&seed) % 100;
        if (what < 50) {
          for (uint32_t k = 0; k < bytes; ++k)
            model[at + k] = got[k] = static_cast<char>(rand_r(&seed));
          if (cache::write(t.o, got.data(), bytes, at) != bytes) _exit(4);
          if (at + bytes > end) end = at + bytes;
        } else if (what < 97) {
          const int64_t want =
              at >= end ? 0 : static_cast<int64_t>(end - at < bytes ? end - at : bytes);
          const int64_t have = cache::read(t.o, got.data(), bytes, at);
          if (have != want) {
            fprintf(stderr, "operation %d: %ld of %u at %lu, end %lu, want %ld\n", n, have, bytes,
                    at, end, want);
            _exit(5);
          }
          if (memcmp(got.data(), model.data() + at, static_cast<size_t>(want)) != 0) {
            fprintf(stderr, "operation %d: other bytes at %lu\n", n, at);
            _exit(6);
          }
        } else if (what == 97) {
          if (flush(t.o, false) != 0) _exit(7);
        } else if (what == 98) {
          if (cache::size(t.o) != static_cast<int64_t>(end)) _exit(8);
        } else {
          const uint64_t to = at;
          truncated(t.o, to);
          if (ftruncate(fd_, static_cast<off_t>(to)) != 0) _exit(9);
          truncated(t.o, to);
          if (to < end) memset(model.data() + to, 0, end - to);
          else memset(model.data() + end, 0, to - end);
          end = to;
        }
      }
      for (Rank& t : ranks) t.finish();
      std::vector<char> file(end);
      if (pread(fd_, file.data(), end, 0) != static_cast<ssize_t>(end) ||
          memcmp(file.data(), model.data(), end) != 0)
        _exit(10);
    });
    wait_for(child);
  }
}

TEST_F(CacheTest, nodes_of_a_job_read_each_block_once) {
  constexpr uint64_t kBytes = 4 << 20;
  fill(kBytes);
  setenv("WEIR_NODE_RANKS", "1", 1);
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(start([&, i] {
      node::set_rank(i);
      Rank t{shared_, -1};
      if (!t.open(path_, {65536, 8}, i, {true, true, 1'000'000})) _exit(3);
      t.o.between = between_on_host(4, 16, 65536);
      if (t.o.between == nullptr) _exit(4);
      t.o.share_key = 42;
      t.o.below.writes = false;
      base::store(&entry(t.o).writers, 0u);
      char piece[4096];
      for (uint64_t at = 0; at < kBytes; at += sizeof piece) {
        if (at % (8 * sizeof piece) == 0) meet(shared_, 4 * (at / (8 * sizeof piece) + 1));
        const int64_t n = cache::read(t.o, piece, sizeof piece, at);
        for (int64_t k = 0; k < n; ++k) {
          if (piece[k] != byte_at(at + k)) _exit(5);
        }
      }
      t.finish();
    }));
  }
  for (pid_t c : children) wait_for(c);
  EXPECT_EQ(kBytes / 65536, shared_->reads);
  EXPECT_EQ(kBytes, shared_->read_bytes);
}

}  // namespace
// What a rank may have locked when it is stopped.
enum class Where { kSlot, kPiece, kSet, kFiles, kWriting, kArena, kMaking };

node::Lock& lock_of(Rank& t, Where where) {
  Slot* s = find(*t.o.cache, tag(t.o, 0));
  if (where == Where::kSet) return t.o.cache->directory->set_locks[t.o.cache->set_of(1)];
  if (where == Where::kFiles) return t.o.cache->directory->files_lock;
  if (where == Where::kArena) return t.o.cache->arena->header->lock;
  if (where == Where::kMaking)
    return reinterpret_cast<writeback::PulsePage*>(const_cast<writeback::Pulse*>(writeback::pulse))
        ->making;
  return s->lock;
}

Slot* find_revoked(const Cache& c) {
  for (uint32_t i = 0; i < c.slots; ++i) {
    if (c.slot(i).revoked != 0) return &c.slot(i);
  }
  return nullptr;
}

// Writes 100 bytes, and stops with the lock of it; goes on to the end when it may.
void stop_with(Shared* shared, const char* path, Where where) {
  Rank t{shared, -1};
  if (!t.open(path, {16384, 8}, 0)) _exit(3);
  const std::vector<char> data(100, 'a');
  if (cache::write(t.o, data.data(), 100, 0) != 100) _exit(4);
  if (where == Where::kWriting) {
    t.before_write = [](Rank& own) {
      own.before_write = nullptr;
      base::store(&own.shared->go, 1u);
      ::raise(SIGSTOP);
    };
    flush(t.o, false);
  } else {
    if (where == Where::kPiece)
      writeback::lock_block(t.o.cache->arena,
                            t.o.cache->arena_block(*find(*t.o.cache, tag(t.o, 0)), 0));
    node::Lock& lock = lock_of(t, where);
    if (node::take(lock) == node::Taken::kNot) _exit(5);
    base::store(&shared->go, 1u);
    ::raise(SIGSTOP);
    if (where == Where::kSlot || where == Where::kPiece)
      unlock(*t.o.cache, *find_revoked(*t.o.cache));
    else node::release(lock);
  }
  t.finish();
}

void go_beside(Shared* shared, const char* path) {
  Rank t{shared, -1};
  if (!t.open(path, {16384, 8}, 1)) _exit(13);
  char piece[200];
  if (cache::read(t.o, piece, 200, 0) != 100 || piece[0] != 'a' || piece[99] != 'a') _exit(14);
  const std::vector<char> data(60, 'b');
  if (cache::write(t.o, data.data(), 60, 70) != 60 ||
      cache::write(t.o, data.data(), 60, 20'000) != 60)
    _exit(15);
  if (cache::read(t.o, piece, 200, 0) < 130 || piece[69] != 'a' || piece[70] != 'b' ||
      piece[129] != 'b')
    _exit(16);
  t.finish();
}

class StoppedTest : public CacheTest, public ::testing::WithParamInterface<Where> {
 protected:
  static bool refuses() { return GetParam() == Where::kFiles || GetParam() == Where::kMaking; }
};

TEST_P(StoppedTest, a_rank_that_is_stopped_holds_up_nobody) {
  setenv("WEIR_LOCK_WAIT_MS", "200", 1);
  const pid_t stopped = start([&] { stop_with(shared_, path_, GetParam()); });
  while (base::load(&shared_->go) == 0) usleep(1000);
  int status = 0;
  ASSERT_EQ(stopped, waitpid(stopped, &status, WUNTRACED));
  ASSERT_TRUE(WIFSTOPPED(status)) << status;
  const pid_t beside = start([&] {
    if (refuses()) {
      Rank t{shared_, -1};
      // Refused within the bound: the file has no layer then.
      _exit(t.open(path_, {16384, 8}, 1) ? 13 : 0);
    }
    go_beside(shared_, path_);
  });
  wait_for(beside);
  if (GetParam() == Where::kArena) {
    EXPECT_EQ(0u, shared_->counts[1][kAccepted]);  // no byte that nobody would write
  } else if (!refuses()) {
    EXPECT_GE(shared_->counts[1][kRevoked], 1u);
  }
  kill(stopped, SIGCONT);
  wait_for(stopped);
  if (refuses()) return;
  char got[20'060];
  ASSERT_EQ(static_cast<ssize_t>(sizeof got), pread(fd_, got, sizeof got, 0));
  for (int i = 0; i < 130; ++i) ASSERT_EQ(i < 70 ? 'a' : 'b', got[i]) << i;
  EXPECT_EQ('b', got[20'059]);
}

INSTANTIATE_TEST_SUITE_P(Cache, StoppedTest,
                         ::testing::Values(Where::kSlot, Where::kPiece, Where::kSet, Where::kFiles,
                                           Where::kWriting, Where::kArena, Where::kMaking));

// Writes the block, and waits with its request until it may go on.
void write_slowly(Rank& t) {
  t.before_write = [](Rank& own) {
    own.before_write = nullptr;
    base::store(&own.shared->go, 1u);
    while (base::load(&own.shared->go) != 2) usleep(200);
  };
}

TEST_F(CacheTest, a_block_is_read_and_written_into_while_it_is_written_to_the_file) {
  const pid_t writer = start([&] {
    Rank t{shared_, -1};
    const std::vector<char> data(100, 'a');
    if (!t.open(path_, {16384, 8}, 0) || cache::write(t.o, data.data(), 100, 0) != 100) _exit(3);
    write_slowly(t);
    if (flush(t.o, false) != 0) _exit(4);
    t.finish();
  });
  while (base::load(&shared_->go) == 0) usleep(200);
  const pid_t other = start([&] {
    Rank t{shared_, -1};
    char piece[200];
    if (!t.open(path_, {16384, 8}, 1) || cache::read(t.o, piece, 200, 0) != 100 || piece[99] != 'a')
      _exit(3);
    const std::vector<char> data(60, 'b');
    if (cache::write(t.o, data.data(), 60, 70) != 60 || cache::read(t.o, piece, 200, 0) != 130 ||
        piece[70] != 'b')
      _exit(4);
    if (cache::write(t.o, data.data(), 60, 20'000) != 60) _exit(5);
    base::store(&shared_->go, 2u);
    t.finish();
  });
  wait_for(other);
  wait_for(writer);
  EXPECT_EQ(0u, shared_->counts[1][kRevoked]);
  char got[130];
  ASSERT_EQ(130, pread(fd_, got, 130, 0));
  for (int i = 0; i < 130; ++i) ASSERT_EQ(i < 70 ? 'a' : 'b', got[i]) << i;
}

TEST_F(CacheTest, a_block_whose_writer_was_killed_is_written_by_another) {
  const pid_t writer = start([&] {
    Rank t{shared_, -1};
    const std::vector<char> data(100, 'a');
    if (!t.open(path_, {16384, 8}, 0) || cache::write(t.o, data.data(), 100, 0) != 100) _exit(3);
    write_slowly(t);
    flush(t.o, false);
  });
  while (base::load(&shared_->go) == 0) usleep(200);
  const pid_t other = start([&] {
    Rank t{shared_, -1};
    if (!t.open(path_, {16384, 8}, 1) || cache::write(t.o, "b", 1, 50) != 1) _exit(3);
    base::store(&shared_->go, 3u);
    t.finish();
  });
  while (base::load(&shared_->go) != 3) usleep(200);
  kill(writer, SIGKILL);
  wait_for(writer, SIGKILL);
  wait_for(other);
  EXPECT_EQ(0u, shared_->counts[1][kRevoked]);
  char got[100];
  ASSERT_EQ(100, pread(fd_, got, 100, 0));
  for (int i = 0; i < 100; ++i) ASSERT_EQ(i == 50 ? 'b' : 'a', got[i]) << i;
}

TEST_F(CacheTest, a_call_left_by_a_jump_gives_up_what_it_had_locked) {
  const pid_t parent = start([&] {
    static sigjmp_buf out;
    Rank t{shared_, -1};
    if (!t.open(path_, {16384, 8}, 0)) _exit(3);
    std::vector<char> data(100, 'a');
    if (cache::write(t.o, data.data(), 100, 0) != 100) _exit(4);
    t.before_write = [](Rank& own) {
      own.before_write = nullptr;
      siglongjmp(out, 1);
    };
    if (sigsetjmp(out, 1) == 0) {
      flush(t.o, false);
      _exit(5);
    }
    if (cache::write(t.o, data.data(), 100, 100) != 100) _exit(6);
    if (t.shared->counts[0][kPassedOn] != 0) _exit(7);  // as ever, not past the cache
    const pid_t child = start([&] {
      node::forked();
      Rank u{shared_, -1};
      char piece[200];
      if (!u.open(path_, {16384, 8}, 1) || cache::read(u.o, piece, 200, 0) != 200 ||
          piece[199] != 'a')
        _exit(10);
      u.finish();
    });
    int status = -1;
    waitpid(child, &status, 0);
    if (status != 0) _exit(WEXITSTATUS(status));
    char piece[200];
    if (cache::read(t.o, piece, 200, 0) != 200 || piece[0] != 'a' || piece[199] != 'a') _exit(8);
    t.finish();
  });
  wait_for(parent);
  EXPECT_EQ(0u, shared_->counts[1][kRevoked]);
}

TEST_F(CacheTest, a_thread_that_was_cancelled_is_dead_while_its_process_lives) {
  const pid_t parent = start([&] {
    static Rank t{shared_, -1};
    if (!t.open(path_, {16384, 8}, 0)) _exit(3);
    pthread_t thread;
    pthread_create(&thread, nullptr, [](void*) -> void* {
      char data[100] = "a";
      if (cache::write(t.o, data, 100, 0) != 100 || !lock(t.o, *find(*t.o.cache, tag(t.o, 0))))
        _exit(4);
      return nullptr;
    }, nullptr);
    pthread_join(thread, nullptr);
    char piece[200];
    if (cache::write(t.o, "b", 1, 100) != 1 || cache::read(t.o, piece, 200, 0) != 101 ||
        piece[100] != 'b')
      _exit(5);
    t.finish();
  });
  wait_for(parent);
  EXPECT_EQ(0u, shared_->counts[0][kRevoked]);
}

}  // namespace weir::cache
