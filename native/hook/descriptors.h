// SPDX-License-Identifier: Apache-2.0
// What is known of each descriptor: its file, and where it stands. Plain memory without locks: a
// program that races on a descriptor gets what it would get from the kernel, one or the other.
#pragma once

#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "wire/format.h"

namespace weir::hook {

enum DescriptorFlag : uint32_t {
  kShared =
      2,  // the position is shared with another descriptor or process: not followed, and unknown
  kAppend = 4,
  kOfFortran = wire::kBelow,  // libgfortran's: what it does with it is below a statement
};

struct Descriptor {
  uint32_t file;  // 0: not known yet
  uint32_t flags;
  uint64_t position;  // wire::kUnknownOffset when not known
};

// Higher numbers are asked for at each call, and their positions are not followed.
inline constexpr int kDescriptors = 1 << 16;
extern WEIR_OWN Descriptor
    descriptors[kDescriptors];  // address space; only the pages of numbers in use become memory

// Asks the kernel for the name of a descriptor that no hook saw being opened. 0: closed, or no
// room.
WEIR_COLD uint32_t find_file(int fd);

inline Descriptor* descriptor(int fd) {
  return WEIR_LIKELY(static_cast<unsigned>(fd) < kDescriptors)
             ? &descriptors[static_cast<unsigned>(fd)]
             : nullptr;
}

inline uint32_t file_of(int fd) {
  const Descriptor* d = descriptor(fd);
  if (WEIR_UNLIKELY(d == nullptr)) return fd >= kDescriptors ? find_file(fd) : 0;
  const uint32_t file = base::load_relaxed(&d->file);
  return WEIR_LIKELY(file != 0) ? file : find_file(fd);
}

// A descriptor was opened, closed, copied. In a vfork child nothing changes: the memory is the
// parent's.
void opened(int fd, uint32_t file, int open_flags);
// The file that this thread's library of a language opened last; whoever waits for one sets it to 0
// before.
extern WEIR_THREAD uint32_t opened_below;
void closed(int fd);
void appends(int fd, bool on);  // by fcntl
void closed_range(unsigned first, unsigned last);
void copied(int from, int to);
// A child of fork shares every position with its parent from now on.
void share_all();
// Another process gets this one.
void share(int fd);

}  // namespace weir::hook
