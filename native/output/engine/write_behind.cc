// SPDX-License-Identifier: Apache-2.0
#include "output/engine/write_behind.h"

#include <sched.h>
#include <signal.h>

#include <chrono>
#include <utility>

#include "output/transport/patience.h"

namespace weir::output {

int processors() {
  cpu_set_t set;
  // A machine with more processors than the set has room for has more than one.
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : CPU_SETSIZE;
}

void WriteBehind::start(bool with_thread) {
  if (!with_thread || threaded_) return;
  // The model's handlers are for the model's threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  threaded_ = pthread_create(&thread_, nullptr, enter, this) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

WriteBehind::~WriteBehind() {
  if (!threaded_) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  given_.notify_one();
  pthread_join(thread_, nullptr);
}

void* WriteBehind::enter(void* self) {
  static_cast<WriteBehind*>(self)->work();
  return nullptr;
}

void WriteBehind::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    given_.wait(lock, [this] { return busy_ || ending_; });
    if (!busy_) return;
    lock.unlock();
    Status result = job_();
    lock.lock();
    result_ = std::move(result);
    busy_ = false;
    done_.notify_one();
  }
}

void WriteBehind::wait() {
  const double began = now_s();
  std::unique_lock lock(mutex_);
  while (busy_) {
    done_.wait_for(lock, std::chrono::microseconds(pause_us));
    if (!busy_ || now_s() - began > limit_s) continue;
    lock.unlock();
    on_pause();
    lock.lock();
  }
}

Status WriteBehind::hand(Job job) {
  if (!threaded_) return job();
  wait();
  WEIR_TRY(std::exchange(result_, {}));
  {
    const std::lock_guard lock(mutex_);
    job_ = std::move(job);
    busy_ = true;
  }
  given_.notify_one();
  return {};
}

Status WriteBehind::finish() {
  if (!threaded_) return {};
  wait();
  return std::exchange(result_, {});
}

}  // namespace weir::output
