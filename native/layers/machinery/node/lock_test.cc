// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/node/lock.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "base/atomic.h"
#include "base/apart.h"
#include "base/thread.h"

using namespace weir::node;

namespace {

template <typename T>
T* shared() {
  return static_cast<T*>(
      mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}

// Looks at one process again and again, by the whole way and by what is remembered of it.
Identity looked_at{};
uint32_t looks = 0, lived = 0, over = 0;
void* look(void*) {
  weir::base::begin_thread("weir-test");
  while (weir::base::load(&over) == 0) {
    char text[512];
    weir::base::read_file_apart("/proc/1/stat", text, sizeof text);
    if (alive(looked_at)) weir::base::fetch_add(&lived, 1u);
    weir::base::fetch_add(&looks, 1u);
  }
  weir::base::store(&over, 2u);
  return nullptr;
}

// A child that has both locks until it is asked to let the first one go.
struct Holding {
  Lock first, second;
  uint32_t is_held, release_first;
};
pid_t hold(Holding* h) {
  const pid_t child = fork();
  if (child != 0) return child;
  forked();
  if (take(h->first) != Taken::kFree || take(h->second) != Taken::kFree) _exit(1);
  weir::base::store(&h->is_held, 1u);
  while (weir::base::load(&h->release_first) == 0) usleep(1000);
  release(h->first);
  for (;;) pause();
}

constexpr uint32_t kTicks = 100, kTickUs = 2000, kBoundMs = 50;
Holding* held_by_child;
uint32_t ticks = 0;
void on_tick(int) {
  if (weir::base::fetch_add(&ticks, 1u) == kTicks)
    weir::base::store(&held_by_child->release_first, 1u);
}

}  // namespace

TEST(Lock, an_owner_that_goes_on_is_waited_for_and_not_looked_at) {
  setenv("WEIR_LOCK_WAIT_MS", std::to_string(kBoundMs).c_str(), 1);
  read_lock_wait();
  held_by_child = shared<Holding>();
  const pid_t child = hold(held_by_child);
  while (weir::base::load(&held_by_child->is_held) == 0) sched_yield();
  owner_word();  // reads when this thread began
  const uint64_t read_before = weir::base::own_bytes_read;
  static_assert(kTicks * kTickUs > kBoundMs * 2000);
  signal(SIGALRM, on_tick);
  const itimerval each{{0, kTickUs}, {0, kTickUs}}, none{};
  setitimer(ITIMER_REAL, &each, nullptr);
  EXPECT_EQ(take(held_by_child->first, &ticks), Taken::kFree);
  setitimer(ITIMER_REAL, &none, nullptr);
  EXPECT_GE(ticks, kTicks);
  EXPECT_EQ(weir::base::own_bytes_read, read_before);
  EXPECT_EQ(take(held_by_child->second, &ticks), Taken::kNot) << "nothing changes any more";
  EXPECT_GT(weir::base::own_bytes_read, read_before) << "what is read of /proc counts";
  release(held_by_child->first);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  setenv("WEIR_LOCK_WAIT_MS", "1000", 1);
  read_lock_wait();
}

TEST(Lock, a_thread_of_weirs_own_takes_no_number_from_the_program) {
  looked_at = self();
  ASSERT_TRUE(weir::base::start_thread(look, 256 << 10));
  const int lowest = dup(0);
  close(lowest);
  int wrong = 0;
  while (weir::base::load(&looks) < 4000) {
    const int fd = dup(0);
    wrong += fd != lowest;
    close(fd);
  }
  weir::base::store(&over, 1u);
  while (weir::base::load(&over) != 2) sched_yield();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(lived, looks);
}

TEST(Lock, is_taken_from_the_dead) {
  Lock* lock = shared<Lock>();
  const pid_t child = fork();
  if (child == 0) {
    forked();
    acquire(*lock);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_FALSE(try_acquire(*lock));
  EXPECT_TRUE(acquire(*lock)) << "says that its owner was dead";
  release(*lock);
  EXPECT_TRUE(try_acquire(*lock));
  release(*lock);
}

TEST(Lock, a_zombie_is_dead) {
  int stop[2];
  ASSERT_EQ(pipe(stop), 0);
  auto* who = shared<Identity>();
  const pid_t child = fork();
  if (child == 0) {
    forked();
    *who = self();
    char byte;
    close(stop[1]);
    _exit(read(stop[0], &byte, 1) == 1 ? 1 : 0);
  }
  close(stop[0]);
  while (who->start == 0) usleep(1000);
  EXPECT_TRUE(alive(*who));
  EXPECT_FALSE(alive({who->pid, who->start + 1})) << "a number used again is somebody else";
  close(stop[1]);
  siginfo_t about;
  waitid(P_PID, static_cast<id_t>(child), &about, WEXITED | WNOWAIT);
  EXPECT_FALSE(alive(*who));
  waitpid(child, nullptr, 0);
}

TEST(Lock, a_process_of_another_namespace_has_no_number_here) {
  Identity other = self();
  other.start ^= 1u << 20;
  other.pid = (1u << 22) - 1;
  EXPECT_FALSE(is_foreign(self()));
  ASSERT_TRUE(is_foreign(other));
  EXPECT_TRUE(alive(other)) << "nobody can tell";
  on_foreign({[](Identity) { return Life::kEnded; }, nullptr});
  EXPECT_FALSE(alive(other));
  EXPECT_TRUE(alive(self()));
  on_foreign({[](Identity) { return Life::kUnknown; }, nullptr});
  EXPECT_TRUE(alive(other));
  on_foreign({nullptr, nullptr});
}

TEST(Lock, where_namespaces_are_shared_a_lock_without_an_owner_here_is_not_taken) {
  setenv("WEIR_LOCK_WAIT_MS", std::to_string(kBoundMs).c_str(), 1);
  read_lock_wait();
  Lock* const lock = shared<Lock>();
  const pid_t child = fork();
  if (child == 0) {
    forked();
    _exit(take(*lock) == Taken::kFree ? 0 : 1);
  }
  waitpid(child, nullptr, 0);
  on_foreign({nullptr, [] { return true; }});
  EXPECT_EQ(take(*lock), Taken::kNot);
  EXPECT_FALSE(release_if_dead(*lock));
  on_foreign({nullptr, nullptr});
  EXPECT_EQ(take(*lock), Taken::kFromDead);
  EXPECT_TRUE(release(*lock));
  setenv("WEIR_LOCK_WAIT_MS", "1000", 1);
  read_lock_wait();
}

// In another root directory nobody's start time can be read: numbers are all there is.
TEST(Lock, of_the_living_is_not_taken_where_proc_is_not_seen) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can change its root directory";
  setenv("WEIR_LOCK_WAIT_MS", "5", 1);
  read_lock_wait();
  char root[] = "/tmp/weir-lock-XXXXXX";
  ASSERT_NE(mkdtemp(root), nullptr);
  struct Both {
    Lock ours, theirs;
    Identity parent, child, dead;
  };
  Both* both = shared<Both>();
  both->parent = self();
  ASSERT_TRUE(try_acquire(both->ours));
  const pid_t gone = fork();
  if (gone == 0) {
    forked();
    both->dead = self();
    _exit(0);
  }
  waitpid(gone, nullptr, 0);
  int stop[2];
  ASSERT_EQ(pipe(stop), 0);
  for (const bool knows_itself : {true, false}) {
    const pid_t child = fork();
    if (child == 0) {
      forked();
      if (knows_itself) self();
      if (chroot(root) != 0 || chdir("/") != 0) _exit(1);
      const Identity me = self();
      if ((me.start != 0) != knows_itself || alive(both->dead)) _exit(2);
      if (!alive(both->parent) || !runs(both->parent.pid)) _exit(2);
      if (take(both->ours) != Taken::kNot || release_if_dead(both->ours)) _exit(3);
      if (take(both->theirs) == Taken::kNot) _exit(4);
      __atomic_store(&both->child, &me, __ATOMIC_SEQ_CST);
      char byte;
      _exit(read(stop[0], &byte, 1) == 1 ? 0 : 5);
    }
    const auto runs_still = [=] { return waitpid(child, nullptr, WNOHANG) == 0; };
    while (weir::base::load(&both->child.pid) == 0 && runs_still()) usleep(1000);
    EXPECT_TRUE(alive(both->child));
    EXPECT_EQ(take(both->theirs), Taken::kNot);
    EXPECT_EQ(write(stop[1], "x", 1), 1);
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_FALSE(alive(both->child));
    EXPECT_EQ(take(both->theirs), Taken::kFromDead);
    release(both->theirs);
    both->child = {};
  }
  release(both->ours);
  rmdir(root);
}

TEST(Lock, excludes_others_while_some_of_them_are_killed) {
  struct Both {
    Lock lock;
    volatile uint64_t a, b;
  };
  Both* both = shared<Both>();
  for (int i = 0; i < 24; ++i) {
    if (fork() != 0) continue;
    forked();
    for (int k = 0; k < 2000; ++k) {
      const bool from_dead = acquire(both->lock);
      if (from_dead) both->b = both->a;  // what the last owner left half done
      if (both->a != both->b) _exit(1);
      both->a = both->a + 1;
      if (i % 4 == 0 && k == 500 + i) kill(getpid(), SIGKILL);
      both->b = both->b + 1;
      release(both->lock);
    }
    _exit(0);
  }
  int killed = 0, wrong = 0, status = 0;
  while (wait(&status) > 0) {
    killed += WIFSIGNALED(status);
    wrong += WIFEXITED(status) && WEXITSTATUS(status) != 0;
  }
  EXPECT_EQ(killed, 6);
  EXPECT_EQ(wrong, 0);
  if (acquire(both->lock)) both->b = both->a;  // the last to come may have been one of the killed
  EXPECT_EQ(both->a, both->b);
}

namespace {

struct Jumped {
  Lock locks[2];
  enum : uint32_t { kBefore, kWithin, kEnded } volatile at;
};

sigjmp_buf left_at;
void leave(int) { siglongjmp(left_at, 1); }

// Again and again; stops before each time.
[[noreturn]] void take_and_leave(Jumped& own) {
  owner_word();  // found once, by system calls
  signal(SIGUSR1, leave);
  ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  for (;;) {
    own.at = Jumped::kBefore;
    raise(SIGSTOP);
    if (sigsetjmp(left_at, 1) == 0) {
      own.at = Jumped::kWithin;
      if (!try_acquire(own.locks[0]) || take(own.locks[1]) != Taken::kFree) _exit(3);
      release(own.locks[1]);
      release(own.locks[0]);
      own.at = Jumped::kEnded;
    }
    forfeit_held();
    for (Lock& lock : own.locks) {
      if (lock.word != 0 && revoked_lives(lock.word & ~(1u << 31))) _exit(4);
      lock.word = 0;
    }
  }
}

}  // namespace

// A handler jumps out of taking or releasing a lock, at each instruction of both: whoever comes
// next finds the lock free, or with a dead owner.
TEST(Lock, that_a_jump_left_has_no_living_owner) {
  Jumped* const own = shared<Jumped>();
  const pid_t child = fork();
  if (child == 0) take_and_leave(*own);
  int status = 0;
  const auto stops = [&] { return waitpid(child, &status, 0) == child && WIFSTOPPED(status); };
  ASSERT_TRUE(stops());
  int instructions = 0;
  for (bool ended = false; !ended; ++instructions) {
    for (int within = 0; within <= instructions && !ended; within += own->at == Jumped::kWithin) {
      ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr);
      ASSERT_TRUE(stops()) << "exit status " << WEXITSTATUS(status) << " after instruction "
                           << instructions;
      ended = own->at == Jumped::kEnded;
    }
    ptrace(PTRACE_CONT, child, nullptr, ended ? 0 : SIGUSR1);
    ASSERT_TRUE(stops()) << "exit status " << WEXITSTATUS(status) << " after instruction "
                         << instructions;
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  EXPECT_GT(instructions, 50);
}
