// SPDX-License-Identifier: Apache-2.0
// Locks of a file that gets another open file under its descriptors: those of the open file (flock,
// F_OFD_SETLK), and those of the process (fcntl), which it loses with the first descriptor of the
// file that it closes, also with one of weir's.
#pragma once

#include <fcntl.h>
#include <stdint.h>

namespace weir::stack {

class CarriedLocks {
 public:
  // Those that the descriptor has, by what /proc says. Three system calls and no memory.
  explicit CarriedLocks(int fd);
  bool any_of_process() const;
  // Locks the file of this descriptor as well. Waits for nobody: what another process has locked
  // meanwhile it keeps. Where the descriptor is not open as a lock of the process needs it, that is
  // taken by another known one of the same file.
  void set_of_process(int fd) const;
  void set_of_open_file(int fd) const;

 private:
  static constexpr uint32_t kMost = 32;  // further ones are not carried
  struct Lock {
    int command;  // F_SETLK, F_OFD_SETLK; 0: flock
    struct flock range;
  };

  Lock locks_[kMost];
  uint32_t count_ = 0;
};

}  // namespace weir::stack
