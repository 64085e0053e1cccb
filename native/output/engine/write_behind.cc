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
    given_.wait(lock, [this] { return ending_ || (!busy_ && !jobs_.empty()); });
    if (ending_) return;
    do_next(lock);
  }
}

void WriteBehind::do_next(std::unique_lock<std::mutex>& lock) {
  const Job job = std::move(jobs_.front());
  jobs_.pop_front();
  if (!failed_.ok()) return done_.notify_one();
  busy_ = true;
  lock.unlock();
  Status result = job();
  lock.lock();
  busy_ = false;
  failed_ = std::move(result);
  done_.notify_one();
  given_.notify_one();
}

void WriteBehind::wait_until_left(size_t jobs) {
  const double began = now_s();
  std::unique_lock lock(mutex_);
  while (jobs_.size() + (busy_ ? 1 : 0) > jobs) {
    if (!busy_) {
      do_next(lock);
      continue;
    }
    done_.wait_for(lock, std::chrono::microseconds(pause_us));
    if (!busy_ || now_s() - began > limit_s) continue;
    lock.unlock();
    on_pause();
    lock.lock();
  }
}

Status WriteBehind::hand(Job job) {
  if (!threaded_) return job();
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  given_.notify_one();
  wait_until_left(1);
  const std::lock_guard lock(mutex_);
  if (!failed_.ok()) jobs_.clear();
  return std::exchange(failed_, {});
}

Status WriteBehind::finish() {
  if (!threaded_) return {};
  wait_until_left(0);
  return std::exchange(failed_, {});
}

}  // namespace weir::output
