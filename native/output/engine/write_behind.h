// SPDX-License-Identifier: Apache-2.0
// Writes one slab while the caller brings the next one together: a thread for the calls that wait
// for the file system, and for nothing else. MPI stays with the caller's thread. Jobs are done one
// at a time, in order, by the thread or, when it has not begun with one that the caller must wait
// for, by the caller: on a machine that has no processor to spare, nobody waits for a thread that
// does not run. Where the process has one processor only, there is no thread.
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

#include "output/core/status.h"

namespace weir::output {

// How many processors this process may run on.
int processors();

class WriteBehind {
 public:
  using Job = std::function<Status()>;

  WriteBehind() = default;
  ~WriteBehind();
  WriteBehind(const WriteBehind&) = delete;
  WriteBehind& operator=(const WriteBehind&) = delete;

  // With a thread or without; a thread that cannot be had is done without.
  void start(bool with_thread);
  bool threaded() const { return threaded_; }

  // Called during waits, every `pause_us`, but not for longer than `limit_s` for one job: a file
  // system that hangs must not look alive.
  std::function<void()> on_pause = [] {};
  int pause_us = 50'000;
  double limit_s = 300;

  // The job is done after those before it; when this returns, those are (without a thread: this
  // one, too). After a failure nothing more is done until it is reported, by the result of this or
  // of finish.
  Status hand(Job job);
  // Nothing is under way any more when this returns.
  Status finish();

 private:
  static void* enter(void* self);
  void work();
  void do_next(std::unique_lock<std::mutex>& lock);
  void wait_until_left(size_t jobs);

  bool threaded_ = false, busy_ = false, ending_ = false;
  pthread_t thread_{};
  std::mutex mutex_;
  std::condition_variable given_, done_;
  std::deque<Job> jobs_;
  Status failed_;
};

}  // namespace weir::output
