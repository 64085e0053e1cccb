// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/pool/pool.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"

namespace weir::pool {
namespace {

struct Counting : Job {
  uint32_t* count;
};
void count_one(Job* job) { base::fetch_add(static_cast<Counting*>(job)->count, 1u); }

TEST(Pool, EveryJobRunsOnceHoweverManyAreSubmitted) {
  static Counting jobs[1000];
  uint32_t count = 0;
  for (int round = 0; round < 20; ++round) {
    for (auto& job : jobs) {
      job.run = count_one;
      job.count = &count;
      ASSERT_TRUE(submit(job));
    }
    for (auto& job : jobs) wait(job);
    ASSERT_EQ(count, 1000u * (round + 1));
  }
}

struct Meeting : Job {
  uint32_t* present;
  uint32_t expected;
};
void meet(Job* job) {
  auto* own = static_cast<Meeting*>(job);
  uint32_t now = base::fetch_add(own->present, 1u) + 1;
  if (now == own->expected) base::futex_wake(own->present, INT32_MAX);
  while ((now = base::load(own->present)) < own->expected) base::futex_wait(own->present, now);
}

TEST(Pool, SixtyFourJobsAreUnderWayAtOnce) {
  // Each ends only when all are running.
  static Meeting jobs[kThreads];
  uint32_t present = 0;
  for (auto& job : jobs) {
    job.run = meet;
    job.present = &present;
    job.expected = kThreads;
    ASSERT_TRUE(submit(job));
  }
  for (auto& job : jobs) wait(job);
  EXPECT_EQ(present, kThreads);
  EXPECT_LE(threads(), kThreads + 1);
}

struct Timed : Job {
  uint64_t ran_ns;
  int left;
};
void note_time(Job* job) {
  auto* own = static_cast<Timed*>(job);
  own->ran_ns = base::now_ns();
  if (--own->left > 0) submit_after(*job, 1'000'000);
}

TEST(Pool, DelayedJobRunsNotBeforeItsTime) {
  Timed jobs[5] = {};
  const uint64_t began = base::now_ns();
  const uint64_t delays[] = {30'000'000, 5'000'000, 20'000'000, 1, 10'000'000};
  for (int i = 0; i < 5; ++i) {
    jobs[i].run = note_time;
    ASSERT_TRUE(submit_after(jobs[i], delays[i]));
  }
  for (int i = 0; i < 5; ++i) {
    wait(jobs[i]);
    EXPECT_GE(jobs[i].ran_ns, began + delays[i]) << i;
  }
}

TEST(Pool, JobSubmitsItselfAgainAndIsOverWhenItDoesNot) {
  Timed job = {};
  job.run = note_time;
  job.left = 10;
  ASSERT_TRUE(submit(job));
  wait(job);
  EXPECT_EQ(job.left, 0);
}

TEST(Pool, HurriedJobDoesNotWaitForItsTime) {
  Timed job = {};
  job.run = note_time;
  ASSERT_TRUE(submit_after(job, 3600'000'000'000));
  hurry(job);
  wait(job);
  EXPECT_NE(job.ran_ns, 0u);
}

struct Looking : Job {
  sigset_t blocked;
  cpu_set_t cores;
};
void look(Job* job) {
  auto* own = static_cast<Looking*>(job);
  pthread_sigmask(SIG_BLOCK, nullptr, &own->blocked);
  sched_getaffinity(0, sizeof own->cores, &own->cores);
}

TEST(Pool, ThreadsHoldBackSignalsAndRunWhereTheProcessMayRun) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  const pid_t child = fork();  // where no thread is there yet
  if (child == 0) {
    begin();
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i) {
      if (CPU_ISSET(i, &before)) CPU_SET(i, &one);
    }
    sched_setaffinity(0, sizeof one, &one);
    Looking job = {};
    job.run = look;
    if (!submit(job)) _exit(1);
    wait(job);
    if (sigismember(&job.blocked, SIGTERM) != 1 || sigismember(&job.blocked, SIGSEGV) != 1)
      _exit(2);
    _exit(CPU_EQUAL(&job.cores, &before) ? 0 : 3);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Pool, ForkedChildBeginsAnew) {
  uint32_t count = 0;
  Counting job = {};
  job.run = count_one;
  job.count = &count;
  ASSERT_TRUE(submit(job));
  wait(job);
  ASSERT_GT(threads(), 0u);
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      if (threads() != 0) _exit(1);
      Counting own = {};
      own.run = count_one;
      own.count = &count;
      if (!submit(own)) _exit(2);
      wait(own);
      _exit(count == 2 ? 0 : 3);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_EQ(WEXITSTATUS(status), 0);
  }
}

struct Submitter {
  pthread_t thread;
  uint32_t* count;
};
void* submit_many(void* of) {
  auto* own = static_cast<Submitter*>(of);
  Counting jobs[8] = {};
  for (int i = 0; i < 2000; ++i) {
    Counting& job = jobs[i % 8];
    wait(job);
    job.run = count_one;
    job.count = own->count;
    if (i % 3 == 0 ? !submit_after(job, 1000) : !submit(job)) return own;
  }
  for (auto& job : jobs) wait(job);
  return nullptr;
}

TEST(Pool, SeveralThreadsSubmit) {
  uint32_t count = 0;
  Submitter submitters[4];
  for (auto& one : submitters) {
    one.count = &count;
    ASSERT_EQ(pthread_create(&one.thread, nullptr, submit_many, &one), 0);
  }
  for (auto& one : submitters) {
    void* failed = nullptr;
    pthread_join(one.thread, &failed);
    EXPECT_EQ(failed, nullptr);
  }
  EXPECT_EQ(count, 8000u);
}

Timed shared_job;
void* submit_shared(void*) {
  for (int i = 0; i < 20'000; ++i) {
    if (!submit_after(shared_job, i % 7 * 1000)) return &shared_job;
  }
  return nullptr;
}

// Who finds it idle submits it, and so does another one in the same moment.
TEST(Pool, OneJobSubmittedBySeveralThreadsIsQueuedOnce) {
  shared_job.run = note_time;
  pthread_t threads[4];
  for (auto& one : threads) ASSERT_EQ(pthread_create(&one, nullptr, submit_shared, nullptr), 0);
  for (auto one : threads) {
    void* failed = nullptr;
    pthread_join(one, &failed);
    EXPECT_EQ(failed, nullptr);
  }
  wait(shared_job);
  EXPECT_NE(shared_job.ran_ns, 0u);
}

}  // namespace
}  // namespace weir::pool
