// SPDX-License-Identifier: Apache-2.0
// Locks of a file that gets another open file under its descriptors: those of the open file (flock,
// F_OFD_SETLK), and those of the process (fcntl, lockf), which it loses with the first descriptor
// of the file that it closes, also with one of weir's, and by whichever descriptor it took them.
#pragma once

#include <fcntl.h>
#include <stdint.h>

namespace weir::stack {

// Before the program takes a lock of its process by this descriptor: /proc shows it there alone.
void note_process_lock(int fd);

// Closes a descriptor of weir's own, of a file that the program may have locked by another one: 0
// or -errno. Costs nothing more in a process that has taken no lock. Between the close and the lock
// that is taken again another process may get it: a layer that can do without opens nothing.
long close_keeping_locks(int fd);

class CarriedLocks {
 public:
  // Those of the descriptor's open file and those that the process has on its file, by what /proc
  // says. Three system calls for each descriptor by which the file was locked, and no memory.
  explicit CarriedLocks(int fd);
  bool any_of_process() const;
  // Locks the file of this descriptor as well. Waits for nobody: what another process has locked
  // meanwhile it keeps. Where the descriptor is not open as a lock of the process needs it, that is
  // taken by another known one of the same file.
  void set_of_process(int fd) const;
  // Those of the process by the descriptors that had them.
  void set_again() const;
  void set_of_open_file(int fd) const;

 private:
  static constexpr uint32_t kMost = 32;  // further ones are not carried
  struct Lock {
    int command;  // F_SETLK, F_OFD_SETLK; 0: flock
    int by;       // the descriptor that has it
    struct flock range;
  };

  void add_of(int fd, bool of_process_alone);

  Lock locks_[kMost];
  uint32_t count_ = 0;
};

}  // namespace weir::stack
