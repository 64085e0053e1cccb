// SPDX-License-Identifier: Apache-2.0
// A file under layers: one for each open(2) that a rule matched, shared by all descriptors that dup
// made of it (the kernel's open file description). The table says in one load whether a descriptor
// has one.
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "layers/machinery/stack/layer.h"

namespace weir::stack {

struct File {
  Dispatch enter;          // per operation the first layer that takes part
  Layer* top;
  Layer* bottom;       // system
  int descriptor;  // of the kernel, one of the program's; stack/posix moves it on when that number
                   // is closed
  int flags;           // of open, as fcntl changed them (O_APPEND, O_SYNC, ...)
  uint32_t references; // descriptors
  int last_copy;       // the number that was made last, when there are several
  bool holds;  // a layer has kHolds or kTransforms: the position below is the file's; else the
               // kernel's is
  bool transforms;     // a layer has kTransforms
  bool shares;         // a layer has kSharesNode
  bool common;     // other processes have the same open file (forward): until own_description() the
                   // kernel's position, status flags and locks are not this file's alone
  bool in_memory;  // its descriptor is memory of a layer (in_memory.h)
  bool unsettled;  // of these: the memory has not yet the length or the time of the file
               // (NamesOfLayer::settle)
  bool lent;   // of these: others may have the memory, or what a map or a lock of it leaves behind
  bool empty;  // its layers keep no byte yet: who else wants the file does not wait for it, and is
               // seen at the next call
  bool coherent;  // every rank that may have the file sees the same bytes in the layers: locks need
                  // no trip to the file
  bool left;           // its layers are gone: calls go to the kernel
  uint16_t parks;      // not 0: its last close may keep it (layers/machinery/stack/park.h)
  bool exact;          // the path below stands for this file alone (rules::is_exact)
  bool locked;         // a lock was taken on it, which its last close must end
  bool bypass;         // opening is cheap where it lies: layers that save opens have nothing to do
  bool syncs;          // every write is flushed at once: the process is ending
  bool hurries;        // a flush waits for no other rank: set by who has the lock, for one flush
  uint8_t leaving;     // Reason: leave at the next chance
  int32_t error;       // deferred, positive; 0: none
  uint64_t lost_bytes; // accepted, not written
  uint64_t position;   // of the program, when holds
  uint64_t device, inode;
  uint64_t size_at_open, block_bytes;  // st_blksize
  uint32_t fs_type;    // statfs f_type
  uint32_t name;       // id in the trace's names, 0 without a trace
  uint32_t lock;  // layers/machinery/stack/lock.h; held during every call that enters a stack that
                  // holds. A signal handler that comes in between goes straight to the kernel
  uintptr_t frame;     // stack pointer of the call that has the lock
  int unit;            // Fortran unit, -1 none
  void* lease;         // node/: this opening in the node's registry
  uint64_t published;  // size that the node knows, 0: none
  File *next_alike, *previous_alike, *next_list;  // layers/machinery/stack/openings.h
  uint32_t alike;      // as what it is listed there
  uint32_t pages;      // of memory
  uint16_t layer_count;
  uint16_t rule;       // index of the rule
  char path[];         // absolute, zero-terminated
};

inline constexpr int kFiles = 1 << 16;  // descriptors above it have no layers
// The lowest bits of an entry: what is the kernel's alone although the file is known.
enum EntryBit : uintptr_t {
  kAllPass = 1,     // everything: the file is there for the node's registry
  kReadsPass = 2,   // no layer takes part in
  kWritesPass = 4,
  kSeeksPass = 8,
  kUnsettled = 16,  // File::unsettled; before any call but a read or a write settle_memory() comes
  kEntryBits = 31,
};
// Read by any thread and by signal handlers without a lock. The memory of a File is used again for
// files and never given back (build.h), so one that was found may be closed, but can be looked at.
extern WEIR_OWN File* files[kFiles];

WEIR_INLINE uintptr_t entry_at(int fd) {
  if (WEIR_UNLIKELY(static_cast<unsigned>(fd) >= kFiles)) return 0;
  return reinterpret_cast<uintptr_t>(base::load_relaxed(&files[static_cast<unsigned>(fd)]));
}
WEIR_INLINE File* file_of_entry(uintptr_t entry) {
  return reinterpret_cast<File*>(entry & ~uintptr_t{kEntryBits});
}

WEIR_COLD void settle_memory(int fd);
// For all but reads, writes and the close.
WEIR_INLINE uintptr_t settled_entry_at(int fd) {
  const uintptr_t entry = entry_at(fd);
  if (WEIR_LIKELY((entry & kUnsettled) == 0)) return entry;
  settle_memory(fd);
  return entry_at(fd);
}

// Null: no layers. One load for the usual file.
WEIR_INLINE File* file_at(int fd) {
  const uintptr_t entry = settled_entry_at(fd);
  return WEIR_LIKELY(entry == 0) || (entry & kAllPass) != 0 ? nullptr : file_of_entry(entry);
}

// Also those without layers.
WEIR_INLINE File* known_at(int fd) {
  return file_of_entry(settled_entry_at(fd));
}
// The same for who does nothing to the file.
WEIR_INLINE File* listed_at(int fd) { return file_of_entry(entry_at(fd)); }

}  // namespace weir::stack
