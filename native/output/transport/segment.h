// SPDX-License-Identifier: Apache-2.0
// Memory of one process that others on its node map. It is a file in memory without a name (memfd),
// found through /proc: nothing of it is left behind by a process that is killed, and it needs no
// room in /dev/shm. Where /proc or the descriptor cannot be had (containers of their own for each
// rank), map fails, and the pair of ranks uses another transport.
#pragma once

#include <cstddef>
#include <cstdint>

#include "output/core/status.h"

namespace weir::output {

class Segment {
 public:
  Segment() = default;
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // All pages are there when this returns: a shortage of memory shows here, not as a signal later.
  // fails: WEIR_E_MEMORY. The destructor unmaps it, unless release() was called.
  Status create(int64_t bytes);
  // Another process' segment, to be read.
  Status map(int pid, int descriptor, int64_t bytes);

  // The memory stays for the life of the process: MPI may still read it.
  void release() { data_ = nullptr; }

  char* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  int descriptor() const { return descriptor_; }

 private:
  char* data_ = nullptr;
  int64_t bytes_ = 0;
  int descriptor_ = -1;
};

}  // namespace weir::output
