// SPDX-License-Identifier: Apache-2.0
// Writes dirty blocks to their files, in several threads. Decides how a piece is written and what
// is tried again; which blocks and when is the caller's.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "layers/writeback/daemon/arenas.h"
#include "layers/writeback/daemon/errors.h"

namespace weir::daemon {

// Everything of one dead process in one arena.
struct Work {
  std::shared_ptr<Held> held;
  node::Identity dead;
  std::vector<int> slots;
};

struct Death;

class Recovery {
 public:
  Recovery(Errors& errors, unsigned most_threads) : errors_(errors), most_threads_(most_threads) {}
  ~Recovery();  // when everything is done

  // Writes out what is dirty in those slots of one dead process: where a file has several layers
  // that hold bytes, those of the lower ones first, for they are older. Then calls `done` for each
  // with the bytes that could not be written, in some thread.
  void write_out(std::vector<Work> works,
                 std::function<void(const Work&, uint64_t lost_bytes)> done);
  // Something to be done by the way that may block, such as closing a file.
  void run(std::function<void()> job);
  bool idle();

 private:
  void loop();
  void next_wave(const std::shared_ptr<Death>& death);

  Errors& errors_;
  const unsigned most_threads_;
  std::mutex lock_;
  std::condition_variable more_;
  std::deque<std::function<void()>> jobs_;
  unsigned busy_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace weir::daemon
