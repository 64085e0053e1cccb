// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/node/registry.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "layers/machinery/node/table.h"

using namespace weir::node;

namespace {

constexpr uint32_t kLayeredReader = kReads | kLayered, kLayeredWriter = kWrites | kLayered;

void leave_at_once(void* owner, Lease* lease) {
  if (owner != nullptr) ++*static_cast<int*>(owner);
  leave(lease);
}

Lease* opened(uint64_t inode, uint32_t access, Verdict expected, void* owner = nullptr,
              uint32_t kind = 1) {
  Lease* lease = nullptr;
  EXPECT_EQ(open({7, inode, access, kind, owner, nullptr}, &lease), expected);
  return lease;
}

class Node : public testing::Test {
 protected:
  void SetUp() override {
    job_ = "node-" + std::to_string(getpid()) + "-" + std::to_string(++count_);
    setenv("WEIR_JOB", job_.c_str(), 1);
  }
  // A process has one node: each test gets a process.
  void in_child(const std::function<void()>& what) {
    const pid_t child = fork();
    if (child == 0) {
      forked();
      on_recall(leave_at_once);
      what();
      _exit(HasFailure() ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(system(("rm -rf /dev/shm/weir.*." + job_).c_str()), 0);
  }
  static pid_t start(const std::function<void()>& what) {
    const pid_t child = fork();
    if (child == 0) {
      forked();
      forked_leases();
      what();
      _exit(HasFailure() ? 1 : 0);
    }
    return child;
  }
  static int end_of(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  }
  std::string job_;
  static int count_;
};
int Node::count_ = 0;

}  // namespace

TEST_F(Node, a_stopped_owner_of_a_bucket_holds_up_nobody) {
  in_child([] {
    Lease* const of_another = opened(5, kLayeredReader, Verdict::kGranted);
    const pid_t other = start([] {
      EXPECT_EQ(take(bucket_of(7, 6).lock), Taken::kFree);
      raise(SIGSTOP);
      EXPECT_TRUE(release(bucket_of(7, 6).lock));
    });
    int status = 0;
    waitpid(other, &status, WUNTRACED);
    EXPECT_TRUE(WIFSTOPPED(status));
    EXPECT_EQ(opened(6, kLayeredReader, Verdict::kFull),
              nullptr);  // within the bound, and without layers
    EXPECT_NE(writers(7, 6), 0u);  // nobody knows
    kill(other, SIGCONT);
    EXPECT_EQ(end_of(other), 0);
    Lease* const lease = opened(6, kLayeredReader, Verdict::kGranted);
    EXPECT_NE(lease, nullptr);
    close(lease);
    close(of_another);
  });
}

TEST_F(Node, who_shares_a_file_is_known_by_the_kind_of_their_stacks) {
  in_child([] {
    constexpr uint32_t kSharer = kLayeredWriter | kShares;
    EXPECT_EQ(kind_of_sharers(7, 1), 0u);
    Lease* const first = opened(1, kSharer, Verdict::kGranted, nullptr, 5);
    EXPECT_EQ(kind_of_sharers(7, 1), 5u);
    EXPECT_FALSE(has_others(first));
    Lease* const second = opened(1, kSharer, Verdict::kGranted, nullptr, 5);
    EXPECT_TRUE(has_others(first));
    close(second);
    EXPECT_FALSE(has_others(first));
    close(first);
    Lease* const alone = opened(1, kLayeredWriter, Verdict::kGranted);
    EXPECT_EQ(kind_of_sharers(7, 1), 0u);
    close(alone);
  });
}

TEST_F(Node, readers_keep_their_layers_and_a_writer_makes_everybody_plain) {
  in_child([] {
    EXPECT_FALSE(any());
    int recalled = 0;
    Lease* first = opened(1, kLayeredReader, Verdict::kGranted, &recalled);
    Lease* second = opened(1, kLayeredReader, Verdict::kGranted, &recalled);
    EXPECT_TRUE(any());
    Lease* writer = opened(1, kLayeredWriter, Verdict::kPlain, &recalled);
    EXPECT_EQ(recalled, 2);
    Lease* late = opened(1, kLayeredReader, Verdict::kPlain, &recalled);
    close(first);
    close(second);
    close(writer);
    close(late);
    EXPECT_FALSE(any());
    Lease* fresh = opened(1, kLayeredWriter, Verdict::kGranted, &recalled);
    EXPECT_EQ(recalled, 2);
    close(fresh);
  });
}

TEST_F(Node, a_plain_opening_recalls_a_layered_writer_of_another_process) {
  in_child([] {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t holder = start([&] {
      int recalled = 0;
      Lease* lease = opened(5, kLayeredWriter, Verdict::kGranted, &recalled);
      publish_size(lease, 12345);
      EXPECT_EQ(write(ready[1], "x", 1), 1);
      for (int i = 0; i < 10000 && *static_cast<volatile int*>(&recalled) == 0; ++i) usleep(1000);
      EXPECT_EQ(recalled, 1);
      close(lease);
    });
    char byte;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    uint64_t size = 0;
    EXPECT_TRUE(join());
    EXPECT_TRUE(size_of(7, 5, &size));
    EXPECT_EQ(size, 12345u);
    EXPECT_FALSE(size_of(7, 6, &size));
    Lease* reader = opened(5, kReads, Verdict::kPlain);
    EXPECT_FALSE(size_of(7, 5, &size)) << "who has left has written everything";
    EXPECT_EQ(end_of(holder), 0);
    close(reader);
    EXPECT_FALSE(any());
  });
}

TEST_F(Node, an_empty_holder_is_not_waited_for_and_may_not_begin_afterwards) {
  in_child([] {
    int recalled = 0;
    Lease* empty = opened(6, kLayeredReader | kEmpty, Verdict::kGranted, &recalled);
    EXPECT_FALSE(taken_away(empty));
    Lease* writer = opened(6, kWrites, Verdict::kPlain);
    EXPECT_EQ(recalled, 0) << "it had nothing to give back";
    EXPECT_TRUE(taken_away(empty));
    EXPECT_FALSE(begin(empty));
    leave(empty);
    close(empty);
    close(writer);
    EXPECT_FALSE(any());
    Lease* begun = opened(6, kLayeredReader | kEmpty, Verdict::kGranted, &recalled);
    EXPECT_TRUE(begin(begun));
    EXPECT_TRUE(begin(begun));
    writer = opened(6, kWrites, Verdict::kPlain);
    EXPECT_EQ(recalled, 1);
    EXPECT_FALSE(taken_away(begun));
    close(begun);
    close(writer);
  });
}

TEST_F(Node, an_empty_writer_that_has_died_needs_no_drain) {
  in_child([] {
    EXPECT_TRUE(join());
    on_dead_holder([] { ADD_FAILURE() << "nothing is to be drained"; });
    EXPECT_TRUE(WIFSIGNALED(end_of(start([] {
      opened(8, kLayeredWriter | kEmpty, Verdict::kGranted);
      kill(getpid(), SIGKILL);
    }))));
    close(opened(8, kLayeredWriter, Verdict::kGranted));
    EXPECT_FALSE(any());
  });
}

namespace {

// One holder for a race with who opens the file: what it holds, under a lock that its recall takes
// as a file's would.
struct Racer {
  pthread_mutex_t lock;
  int holds, recalled, refused;
};

void give_back(void* owner, Lease* lease) {
  auto* racer = static_cast<Racer*>(owner);
  pthread_mutex_lock(&racer->lock);
  racer->holds = 0;
  ++racer->recalled;
  leave(lease);
  pthread_mutex_unlock(&racer->lock);
}

void spin(unsigned turns) {
  for (unsigned i = 0; i < turns; ++i) __asm__ volatile("");
}

}  // namespace

TEST_F(Node, who_begins_to_hold_and_who_opens_see_each_other) {
  const unsigned seed = static_cast<unsigned>(getpid());
  SCOPED_TRACE("seed " + std::to_string(seed));
  constexpr int kRounds = 300;
  in_child([=] {
    EXPECT_TRUE(join());
    auto* racer = static_cast<Racer*>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    racer->lock = PTHREAD_MUTEX_INITIALIZER;
    int go[2], done[2];
    ASSERT_EQ(pipe(go) + pipe(done), 0);
    char byte = 0;
    const pid_t holder = start([&] {
      srandom(seed);
      for (int round = 0; round < kRounds; ++round) {
        Lease* lease = nullptr;
        EXPECT_EQ(open({7, 60, kLayeredReader | kEmpty, 1, racer, give_back}, &lease),
                  Verdict::kGranted);
        EXPECT_EQ(write(done[1], "o", 1), 1);
        EXPECT_EQ(read(go[0], &byte, 1), 1);
        spin(static_cast<unsigned>(random() % 60000));
        pthread_mutex_lock(&racer->lock);
        const bool begun = begin(lease);
        racer->holds = begun;
        racer->refused += !begun;
        pthread_mutex_unlock(&racer->lock);
        EXPECT_EQ(write(done[1], "b", 1), 1);
        EXPECT_EQ(read(go[0], &byte, 1), 1);
        close(lease);
        EXPECT_EQ(write(done[1], "c", 1), 1);
        EXPECT_EQ(read(go[0], &byte, 1), 1);
      }
    });
    const auto hear = [&] { EXPECT_EQ(read(done[0], &byte, 1), 1); };
    const auto say = [&] { EXPECT_EQ(write(go[1], "x", 1), 1); };
    srandom(seed + 1);
    for (int round = 0; round < kRounds; ++round) {
      hear();
      say();
      spin(static_cast<unsigned>(random() % 60000));
      Lease* writer = opened(60, kWrites, Verdict::kPlain);
      EXPECT_EQ(weir::base::load(&racer->holds), 0) << "round " << round;
      hear();
      EXPECT_EQ(weir::base::load(&racer->holds), 0)
          << "round " << round << ": it began after the file had been opened";
      say();
      hear();
      close(writer);
      say();
    }
    EXPECT_EQ(end_of(holder), 0);
    EXPECT_EQ(racer->recalled + racer->refused, kRounds) << "one of the two, each time";
    printf("recalled %d, refused %d\n", racer->recalled, racer->refused);
  });
}

TEST_F(Node, openings_of_one_sharing_stack_are_no_conflict) {
  in_child([] {
    int recalled = 0;
    Lease* a = opened(9, kLayeredWriter | kShares, Verdict::kGranted, &recalled, 42);
    Lease* b = opened(9, kLayeredWriter | kShares, Verdict::kGranted, &recalled, 42);
    publish_size(a, 100);
    publish_size(b, 50);
    uint64_t size = 0;
    EXPECT_TRUE(size_of(7, 9, &size));
    EXPECT_EQ(size, 100u) << "the largest";
    withdraw_size(a);
    EXPECT_TRUE(size_of(7, 9, &size));
    EXPECT_EQ(size, 50u);
    Lease* other = opened(9, kLayeredWriter | kShares, Verdict::kPlain, &recalled, 43);
    EXPECT_EQ(recalled, 2);
    close(a);
    close(b);
    close(other);
    EXPECT_FALSE(any_sizes());
  });
}

TEST_F(Node, who_has_died_as_a_reader_is_no_holder_and_a_writer_waits_for_its_drain) {
  in_child([] {
    EXPECT_TRUE(join());
    static Identity* dead = static_cast<Identity*>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    EXPECT_TRUE(WIFSIGNALED(end_of(start([] {
      opened(3, kLayeredReader, Verdict::kGranted);
      Lease* writer = opened(4, kLayeredWriter, Verdict::kGranted);
      publish_size(writer, 10);
      *dead = self();
      kill(getpid(), SIGKILL);
    }))));
    close(opened(3, kLayeredWriter, Verdict::kGranted));
    // Draining, here, is this callback.
    static int asked = 0;
    on_dead_holder([] {
      ++asked;
      EXPECT_EQ(release_dead(dead->pid, dead->start), 1u);
    });
    close(opened(4, kLayeredWriter, Verdict::kGranted));
    EXPECT_EQ(asked, 1);
    EXPECT_FALSE(any());
    EXPECT_FALSE(any_sizes());
  });
}

TEST_F(Node, leases_of_processes_that_ended_make_room_for_more_than_the_table_holds) {
  in_child([] {
    EXPECT_TRUE(join());
    constexpr uint64_t kProcesses = 10, kFiles = 8000;  // 80,000 leases; there is room for 65,536
    for (uint64_t process = 0; process < kProcesses; ++process) {
      EXPECT_TRUE(WIFEXITED(end_of(start([=] {
        for (uint64_t file = 0; file < kFiles; ++file)
          opened(1000 + process * kFiles + file, kLayeredReader, Verdict::kGranted);
        opened(900 + process, kLayeredWriter, Verdict::kGranted);  // its bytes wait for a drain
        _exit(0);
      }))));
    }
    EXPECT_EQ(release_dead_if([](Identity, void*) { return true; }, nullptr) % kFiles, kProcesses);
    EXPECT_FALSE(any());
  });
}

TEST_F(Node, processes_that_were_killed_leave_their_places_to_others) {
  in_child([] {
    EXPECT_TRUE(join());
    const auto pid = static_cast<uint32_t>(start([] { _exit(0); }));
    EXPECT_EQ(end_of(static_cast<pid_t>(pid)), 0);
    const uint32_t own = own_user();
    const uint32_t ended = own - static_cast<uint32_t>(getpid()) + pid;
    for (uint32_t& user : registry->users) {
      if (user == 0) user = ended;
    }
    EXPECT_EQ(end_of(start([] { EXPECT_FALSE(leave_last()); })), 0);  // it was one of the users
    EXPECT_LE(registry->most_users, kUsers);
    EXPECT_TRUE(leave_last());
  });
}

TEST_F(Node, recall_by_name_spares_the_one_that_asks_and_changes_are_counted) {
  in_child([] {
    int mine = 0, other = 0;
    Lease* a = opened(11, kLayeredReader, Verdict::kGranted, &mine);
    Lease* b = opened(11, kLayeredReader, Verdict::kGranted, &other);
    EXPECT_TRUE(recall(7, 11, a));
    EXPECT_EQ(mine, 0);
    EXPECT_EQ(other, 1);
    EXPECT_FALSE(recall(7, 11, a));
    const uint64_t before = change_count(7, 11);
    changed(7, 11);
    EXPECT_EQ(change_count(7, 11), before + 1);
    changed(7, 12);
    close(a);
    close(b);
  });
}

TEST_F(Node, holders_killed_at_any_moment_leave_it_whole) {
  const unsigned seed = static_cast<unsigned>(getpid());
  SCOPED_TRACE("seed " + std::to_string(seed));
  in_child([=] {
    EXPECT_TRUE(join());
    srandom(seed);
    on_dead_holder([] { release_dead_if([](Identity, void*) { return true; }, nullptr); });
    for (int round = 0; round < 40; ++round) {
      const pid_t child = start([=] {
        for (unsigned i = 0;; ++i) {
          Lease* lease = nullptr;
          open({7, 100 + i % 5, i % 3 == 0 ? kLayeredWriter : kLayeredReader, 1, nullptr, nullptr},
               &lease);
          publish_size(lease, i);
          close(lease);
        }
      });
      usleep(static_cast<useconds_t>(3000 + random() % 5000));
      kill(child, SIGKILL);
      EXPECT_TRUE(WIFSIGNALED(end_of(child)));
      for (uint64_t inode = 100; inode < 105; ++inode) {
        Lease* lease = nullptr;
        EXPECT_EQ(open({7, inode, kLayeredWriter, 1, nullptr, nullptr}, &lease), Verdict::kGranted)
            << "round " << round;
        close(lease);
      }
    }
    release_dead_if([](Identity, void*) { return true; }, nullptr);
    uint64_t size = 0;
    for (uint64_t inode = 100; inode < 105; ++inode) EXPECT_FALSE(size_of(7, inode, &size));
  });
}

TEST_F(Node, counts_are_right_after_a_holder_of_many_openings_was_killed) {
  const unsigned seed = static_cast<unsigned>(getpid());
  SCOPED_TRACE("seed " + std::to_string(seed));
  in_child([=] {
    EXPECT_TRUE(join());
    srandom(seed);
    constexpr uint32_t kWriter = kLayeredWriter | kShares, kReader = kLayeredReader | kShares;
    Lease* writer = opened(200, kWriter, Verdict::kGranted);
    Lease* reader = opened(200, kReader, Verdict::kGranted);
    publish_size(reader, 7);
    for (int round = 0; round < 60; ++round) {
      const pid_t child = start([=] {
        srandom(seed + static_cast<unsigned>(round));
        Lease* held[16] = {};
        for (unsigned i = 0;; ++i) {
          Lease*& lease = held[static_cast<unsigned>(random()) % 16];
          close(lease);
          open({7, 200, i % 3 == 0 ? kWriter : kReader, 1, nullptr, nullptr}, &lease);
          if (i % 5 == 0) publish_size(lease, 10 + i);
          if (i % 7 == 0) withdraw_size(lease);
        }
      });
      usleep(static_cast<useconds_t>(1000 + random() % 3000));
      kill(child, SIGKILL);
      EXPECT_TRUE(WIFSIGNALED(end_of(child)));
      release_dead_if([](Identity, void*) { return true; }, nullptr);
      uint64_t size = 0;
      EXPECT_EQ(writers(7, 200), 1u) << "round " << round;
      EXPECT_TRUE(size_of(7, 200, &size));
      EXPECT_EQ(size, 7u) << "round " << round;
      Lease* more = opened(200, kReader, Verdict::kGranted);
      close(more);
    }
    int recalled = 0;
    close(reader);
    close(writer);
    writer = opened(200, kLayeredWriter, Verdict::kGranted, &recalled, 2);
    reader = opened(200, kReads, Verdict::kPlain);
    EXPECT_EQ(recalled, 1);
    EXPECT_EQ(writers(7, 200), 1u);
    close(reader);
    close(writer);
    EXPECT_EQ(writers(7, 200), 0u);
  });
}

TEST_F(Node, many_openings_of_one_file_leave_and_close_in_any_order) {
  in_child([] {
    constexpr int kMany = 3000;
    static Lease* leases[kMany];
    int recalled = 0;
    for (Lease*& lease : leases) lease = opened(300, kLayeredReader, Verdict::kGranted, &recalled);
    for (int i = 0; i < kMany; ++i) publish_size(leases[i], static_cast<uint64_t>(i) + 1);
    uint64_t size = 0;
    EXPECT_TRUE(size_of(7, 300, &size));
    Lease* writer = opened(300, kWrites, Verdict::kPlain);
    EXPECT_EQ(recalled, kMany);
    EXPECT_FALSE(any_sizes());
    for (int i = 0; i < kMany; i += 2) close(leases[i]);
    Lease* late = opened(300, kLayeredReader, Verdict::kPlain, &recalled);
    for (int i = kMany - 1; i > 0; i -= 2) close(leases[i]);
    EXPECT_EQ(writers(7, 300), 1u);
    close(writer);
    close(late);
    EXPECT_FALSE(any());
  });
}

TEST_F(Node, when_it_is_full_files_get_no_layers) {
  in_child([] {
    Lease* lease = nullptr;
    uint64_t inode = 1;
    Lease* one = nullptr;
    while (open({8, inode, kLayeredReader, 1, nullptr, nullptr}, &lease) == Verdict::kGranted &&
           inode < 70000) {
      one = lease;
      ++inode;
    }
    EXPECT_EQ(inode, 65537u);
    EXPECT_EQ(lease, nullptr);
    close(one);
    EXPECT_EQ(open({8, inode, kLayeredReader, 1, nullptr, nullptr}, &lease), Verdict::kGranted);
  });
}
