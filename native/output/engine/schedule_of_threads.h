// SPDX-License-Identifier: Apache-2.0
// Tests only: threads of which one runs at a time, in an order that a seed decides, on a clock of
// their own. A wait costs no time, and a run that is repeated with its seed does the same. A thread
// runs until it pauses.
#pragma once

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "output/transport/patience.h"

namespace weir::output {

class Schedule : public Clock {
 public:
  explicit Schedule(unsigned seed) : random_(seed) {}
  ~Schedule() override { test_clock = nullptr; }
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  // A run that lasts longer by its own clock ends the program with `what`.
  void set_end(double end_s, std::string what) { end_s_ = end_s, what_ = std::move(what); }

  // Runs body(rank) as that many threads, and returns when all have ended.
  void run(int threads, const std::function<void(int)>& body) {
    test_clock = this;
    threads_ = std::vector<Thread>(static_cast<size_t>(threads));
    std::vector<std::thread> all;
    for (int self = 0; self < threads; ++self) {
      all.emplace_back([this, self, &body] {
        self_ = self;
        std::unique_lock lock(mutex_);
        threads_[static_cast<size_t>(self)].turn.wait(lock, [&] { return running_ == self; });
        lock.unlock();
        body(self);
        lock.lock();
        threads_[static_cast<size_t>(self)].ended = true;
        next(lock, false);
      });
    }
    {
      std::unique_lock lock(mutex_);
      next(lock, false);
    }
    for (std::thread& t : all) t.join();
    test_clock = nullptr;
  }

  double now_s() override { return 1e-6 * static_cast<double>(now_us_); }
  void pause(unsigned us) override { sleep_until(now_us_ + kSlowness * std::max(us, 1U)); }

  // A call of something outside: others may go on before it, and in one of four do.
  void call() {
    if (random_() % 4 == 0)
      sleep_until(now_us_ + static_cast<int64_t>(random_() % kLongestCall_us));
  }
  // False: the time is over. `come` is looked at when some thread has called wake.
  bool wait(double limit_s, const std::function<bool()>& come) {
    const int64_t end_us = now_us_ + static_cast<int64_t>(limit_s * 1e6);
    while (!come()) {
      if (now_us_ >= end_us) return false;
      threads_[static_cast<size_t>(self_)].waits = true;
      sleep_until(end_us);
      threads_[static_cast<size_t>(self_)].waits = false;
    }
    return true;
  }
  void wake() {
    for (Thread& t : threads_) {
      if (t.waits)
        t.ready_us =
            std::min(t.ready_us, now_us_ + static_cast<int64_t>(random_() % kLongestCall_us));
    }
  }

 private:
  // A loaded machine: a pause lasts longer than was asked for, and polls are fewer.
  static constexpr int64_t kSlowness = 20;
  static constexpr int64_t kLongestCall_us = 300;

  struct Thread {
    std::condition_variable turn;
    int64_t ready_us = 0;
    bool waits = false, ended = false;
  };

  void sleep_until(int64_t us) {
    std::unique_lock lock(mutex_);
    threads_[static_cast<size_t>(self_)].ready_us = us;
    next(lock, true);
  }
  // The thread that is ready first goes on; of those that are ready at the same time, any.
  void next(std::unique_lock<std::mutex>& lock, bool comes_back) {
    int best = -1, equals = 0;
    for (int t = 0; t < static_cast<int>(threads_.size()); ++t) {
      const Thread& thread = threads_[static_cast<size_t>(t)];
      if (thread.ended) continue;
      const int64_t lead =
          best < 0 ? 1 : threads_[static_cast<size_t>(best)].ready_us - thread.ready_us;
      if (lead > 0 || (lead == 0 && random_() % static_cast<unsigned>(++equals + 1) == 0)) best = t;
      if (lead > 0) equals = 0;
    }
    if (best < 0) return;
    now_us_ = std::max(now_us_, threads_[static_cast<size_t>(best)].ready_us);
    if (now_s() > end_s_) {
      fprintf(stderr, "FAILED: ranks wait without end: %s\n", what_.c_str());
      abort();
    }
    running_ = best;
    if (best == self_ && comes_back) return;
    threads_[static_cast<size_t>(best)].turn.notify_one();
    if (comes_back)
      threads_[static_cast<size_t>(self_)].turn.wait(lock, [this] { return running_ == self_; });
  }

  static inline thread_local int self_ = -1;
  std::mutex mutex_;
  std::minstd_rand random_;
  std::vector<Thread> threads_;
  int running_ = -1;
  int64_t now_us_ = 1'000'000;
  double end_s_ = 1e9;
  std::string what_;
};

}  // namespace weir::output
