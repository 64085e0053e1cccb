// SPDX-License-Identifier: Apache-2.0
// What weir-stage does with a tier: files that are due go to their place, copies make room.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "layers/stage/tier.h"

namespace weir::stage {

using Clock = std::chrono::steady_clock;

// A file with a mark, as it was looked at without its lock.
struct Staged {
  uint64_t inode, bytes;
  State state;
  Mode mode;
  bool closed;
  std::string key;
  int64_t used_ns;  // when it was last read or written
  uint64_t generation, run;
};
// Marks without a file are of processes that were killed as they removed it: left out.
std::vector<Staged> files_on(const Tier& tier);
bool look_at(const Tier& tier, uint64_t inode, Staged* to);

// Takes what a number of bytes costs at a bandwidth; 0: nothing.
class Pace {
 public:
  explicit Pace(const Tier& tier) : tier_(tier), free_at_(Clock::now()) {}
  void take(uint64_t bytes);

 private:
  const Tier& tier_;
  std::mutex lock_;
  Clock::time_point free_at_;
};

// 0: it is a copy. -ECANCELED: it stays, by its rule; -EBUSY: a process has it open to write;
// -EOWNERDEAD: its writer was killed; -EINPROGRESS: nothing keeps it from its place; else the error
// that did when it was last tried.
Result why_newer(const Tier& tier, const Staged& file);
// Waits until each closed file that goes to its place in the background is there or could not go,
// as long as `most`.
void settle_all(const Tier& tier, std::chrono::milliseconds most);

// Publishes what is due, several files at once.
class Drain {
 public:
  explicit Drain(const Tier& tier);
  ~Drain();
  Drain(const Drain&) = delete;
  Drain& operator=(const Drain&) = delete;

  // Until nothing has been due for the time `idle`.
  void serve(std::chrono::milliseconds idle);

 private:
  struct Waiting {
    std::string key;
    Clock::time_point since, next;
    int failures;
    unsigned looks;  // since its mark was written
    bool running;
  };
  void add(uint64_t inode);
  void read_events();
  void look_at_all();
  bool start_due(bool now, bool quiet);
  void work();
  void finished(uint64_t inode, Result result);
  uint64_t counted_bytes(const Staged& file) const;
  bool count(std::vector<Staged>* files);
  Clock::time_point make_room();

  const Tier& tier_;
  Pace pace_;
  int events_ = -1;
  uint32_t changes_ = 0;
  int recounts_ = 0;
  Clock::time_point next_count_, changed_;  // when programs closed a file last
  bool quiet_ = false;
  std::mutex lock_;  // of what follows
  std::condition_variable ready_;
  std::map<uint64_t, Waiting> waiting_;
  std::deque<uint64_t> queue_;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

// All that may go, of files that nobody writes; with those that wait for the end of the step. The
// number of files that are newer than at their place still, each with the reason.
using Report = std::function<void(const Staged&, Result)>;
int publish_all(const Tier& tier, bool unfinished, const Report& report);

}  // namespace weir::stage
