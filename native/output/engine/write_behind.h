// SPDX-License-Identifier: Apache-2.0
// Writes one slab while the caller brings the next one together: a thread for the calls that wait for the file system, and for nothing
// else. MPI stays with the caller's thread. Where the process has one processor only, the caller writes by itself: there a
// second thread would change places with the first for nothing.
#pragma once

#include <pthread.h>

#include <condition_variable>
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

  // Called during waits, every `pause_us`, but not for longer than `limit_s` for one job: a file system that hangs must not look alive.
  std::function<void()> on_pause = [] {};
  int pause_us = 50'000;
  double limit_s = 300;

  // Waits for the job before this one. When that one failed, its status is returned and `job` is not done; else `job` is begun (without a
  // thread: done).
  Status hand(Job job);
  // Nothing is under way any more when this returns; the status of the last job, told once.
  Status finish();

 private:
  static void* enter(void* self);
  void work();
  void wait();

  bool threaded_ = false, busy_ = false, ending_ = false;
  pthread_t thread_{};
  std::mutex mutex_;
  std::condition_variable given_, done_;
  Job job_;
  Status result_;
};

}  // namespace weir::output
