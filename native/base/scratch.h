// SPDX-License-Identifier: Apache-2.0
// Room for one path, off the stack: a hook may run in a signal handler on a stack of a few KiB, so
// paths may not live there. While it is held the thread is in a section: no handler finds the rooms
// taken, and none can leave one taken by a jump.
#pragma once

#include "base/section.h"

namespace weir::base {

// Threads: any, and signal handlers. 1024 rooms for the process, no allocation. Cost: that of the
// section.
class Scratch {
 public:
  // A directory, a slash and a path, each as long as the kernel takes them.
  static constexpr size_t kBytes = 8256;

  // Waits a little when all are taken, by as many other threads. even_sealed: also where the
  // process filters its system calls.
  explicit Scratch(bool even_sealed = false);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  char* data() const { return data_; }  // null when none came free, or no system call may be made

  // In a forked child: those of the parent's other threads.
  static void free_all();

 private:
  Section section_;
  char* data_ = nullptr;
};

}  // namespace weir::base
