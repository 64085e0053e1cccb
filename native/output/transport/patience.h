// SPDX-License-Identifier: Apache-2.0
// Waiting with an end. A wait polls; between polls it first yields, then sleeps for growing times
// up to 100 us, so that cores which more ranks share go to those that work. A wait that is for
// somebody else's work alone, and that nobody waits for, may sleep longer: up to a sixteenth of
// what it has waited already. Of a time in which this process did not run itself (the machine was
// stopped, or busy with others) only kLongestGap_s counts: those that are waited for did not run
// either, and are to be heard first.
#pragma once

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace weir::output {

// Time as waits see it. A test that runs many ranks in one process puts its own in place before
// they start.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual double now_s() = 0;
  // Returns after at least this time; 0: others may run.
  virtual void pause(unsigned us) = 0;
};
inline constinit Clock* test_clock = nullptr;

inline double now_s() {
  if (test_clock != nullptr) return test_clock->now_s();
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

inline void pause_us(unsigned us) {
  if (test_clock != nullptr) {
    test_clock->pause(us);
  } else if (us == 0) {
    sched_yield();
  } else {
    usleep(us);
  }
}

class Patience {
 public:
  explicit Patience(double limit_s, unsigned longest_pause_us = kUsual)
      : limit_s_(limit_s), longest_us_(longest_pause_us) {}

  // One pause between two polls; false when the time is over.
  bool wait() {
    ++polls_;
    if (polls_ < 16) return true;
    const double now = now_s();
    if (last_s_ != 0) waited_s_ += std::min(now - last_s_, kLongestGap_s);
    last_s_ = now;
    if (polls_ < 64) {
      pause_us(0);
      return true;
    }
    if (waited_s_ > limit_s_) return false;
    pause_us(pause_us_);
    if (pause_us_ < kUsual) {
      pause_us_ += pause_us_ / 4 + 1;
    } else {
      pause_us_ =
          static_cast<unsigned>(std::clamp<double>(waited_s_ * 1e6 / 16, kUsual, longest_us_));
    }
    return true;
  }
  // Something has come: the time counts anew.
  void restart() {
    polls_ = 0;
    pause_us_ = 1;
    last_s_ = waited_s_ = 0;
  }
  bool slow() const { return pause_us_ >= kUsual; }

  static constexpr unsigned kUsual = 100, kLong = 1000;
  static constexpr double kLongestGap_s = 0.1;

 private:
  double limit_s_, last_s_ = 0, waited_s_ = 0;
  unsigned longest_us_, polls_ = 0, pause_us_ = 1;
};

}  // namespace weir::output
