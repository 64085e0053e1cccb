// SPDX-License-Identifier: Apache-2.0
// The daemon's life: takes messages, watches processes, has the dead drained, frees what they held,
// and goes when nobody needs it.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <string>

#include "layers/writeback/daemon/arenas.h"
#include "layers/writeback/daemon/recovery.h"
#include "layers/writeback/daemon/errors.h"
#include "layers/writeback/watch/watch.h"

namespace weir::daemon {

class Daemon {
 public:
  Daemon(const std::string& directory, const std::string& run);
  ~Daemon();

  // Becomes the directory's daemon. False: there is one, or it cannot be.
  bool begin();
  // Until nobody has been there for so long, or SIGTERM.
  void serve(std::chrono::milliseconds idle);
  // Drains what the dead have left, arenas that failed before included, and returns when it is
  // done. Bytes lost.
  uint64_t recover();

 private:
  bool take_lock();
  void receive();
  void handle(const writeback::Message& message, int descriptor);
  void take_file(const std::shared_ptr<Held>& held, const writeback::Message& message,
                 int descriptor);
  void let_go(const std::shared_ptr<Held>& held, uint32_t slot);
  void ended(node::Identity who);
  static void end_locks(Held& held, uint32_t slot, node::Identity dead);
  static Work all_of(const std::shared_ptr<Held>& held, node::Identity who);
  void drained_private(const Work& work, uint64_t lost);
  static Work used_by(const std::shared_ptr<Held>& held, node::Identity who);
  void leave_shared(const Work& work, uint64_t lost);
  void look_for_dead(bool again);
  bool may_release(node::Identity who);
  void one_less(node::Identity who);
  void live(bool on);

  Arenas arenas_;
  Errors errors_;
  Watch watch_;
  std::set<std::string> draining_;     // main thread; names of arenas of the dead
  std::map<uint64_t, int> work_left_;  // of each dead process, arenas not done yet
  std::mutex lock_;                    // of the two above
  std::atomic<uint64_t> lost_{0};
  int lock_file_ = -1;
  int socket_ = -1;
  writeback::PulsePage* page_ = nullptr;
  Recovery recovery_;  // last: its threads use the rest
};

extern volatile int end_requested;

}  // namespace weir::daemon
