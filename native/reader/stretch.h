// SPDX-License-Identifier: Apache-2.0
// The union of the intervals that end within one stretch of time.
#pragma once

#include <vector>

#include "reader/piece.h"

namespace weir::reader {

// Time after `from`, until `until`: at most kLongest ns. The records that end in it, as ranges of
// chunks.
struct Stretch {
  static constexpr int64_t kLongest = 0xffffffff;

  size_t number;  // 0: the last one in time
  int64_t from, until;
  std::vector<Range> ranges;

  // Its records have been read, and all that end behind it: they need not stay in memory.
  void leave() const;
};

// What is covered in a stretch, as disjoint intervals in ns since `from`, rising.
struct Covered {
  struct Part {
    uint32_t begin, end;
  };

  int64_t from, until;
  std::vector<Part> parts;
  uint64_t records = 0;
  // Least start: may lie before the stretch, which then is covered up to it.
  int64_t first_ns = std::numeric_limits<int64_t>::max();
  uint64_t strays = 0;  // records that should end in the stretch and do not: left out
};

// Makes unions of stretches, one after the other, in memory that it keeps.
class Union {
 public:
  Covered of(const Stretch& stretch);

 private:
  // start << 32 | end, in ns since the stretch began, the start no less than 0: sorted as numbers
  // they are sorted by start.
  using Key = uint64_t;

  void take(const Range& range, Covered& covered);
  void sort(int64_t length_ns);
  void pass(unsigned shift, unsigned bits);
  void sweep(Covered& covered);

  std::vector<Key> keys_, other_;
  std::vector<Covered::Part> parts_;
  size_t count_ = 0;
};

}  // namespace weir::reader
