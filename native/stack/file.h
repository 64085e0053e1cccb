// SPDX-License-Identifier: Apache-2.0
// A file under layers: one for each open(2) that a rule matched, shared by all descriptors that dup made of it (the kernel's open
// file description). The table says in one load whether a descriptor has one.
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "stack/layer.h"

namespace weir::stack {

struct File {
  Layer* top;
  Layer* bottom;       // system
  int descriptor;      // of the kernel, one of the program's; stack/posix moves it on when that number is closed
  int flags;           // of open, as fcntl changed them (O_APPEND, O_SYNC, ...)
  uint32_t references; // descriptors
  bool holds;          // a layer has kHolds: the position below is the file's; else the kernel's is
  bool transforms;     // a layer has kTransforms
  uint8_t leaving;     // Reason: leave at the next chance
  int32_t error;       // deferred, positive; 0: none
  uint64_t lost_bytes; // accepted, not written
  uint64_t position;   // of the program, when holds
  uint64_t device, inode;
  uint64_t size_at_open, block_bytes;  // st_blksize
  uint32_t fs_type;    // statfs f_type
  uint32_t name;       // id in the trace's names, 0 without a trace
  uint32_t lock;       // stack/lock.h; held during every call that enters the stack
  uint32_t lock_owner; // thread id: a signal handler that comes in between goes straight to the kernel
  int unit;            // Fortran unit, -1 none
  void* lease;         // node/: this opening in the node's registry
  char path[];         // absolute, zero-terminated
};

inline constexpr int kFiles = 1 << 16;
extern WEIR_OWN File* files[kFiles];

// Null: no layers. One load for the usual file.
WEIR_INLINE File* file_at(int fd) {
  return WEIR_LIKELY(static_cast<unsigned>(fd) < kFiles) ? base::load_relaxed(&files[static_cast<unsigned>(fd)]) : nullptr;
}

}  // namespace weir::stack
