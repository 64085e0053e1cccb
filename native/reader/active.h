// SPDX-License-Identifier: Apache-2.0
// Exact active time: the length of the union of all I/O intervals of several files.
#pragma once

#include <vector>

#include "reader/names.h"

namespace weir::reader {

struct ActiveInput {
  const Mapping* file;
  Index* index;
  const Names* names;
  weir_reader_clock clock;
  const uint8_t* mask;  // a byte per process, 0 leaves it out; null: all
};

struct Active {
  int64_t total_ns = 0, first_ns = 0, last_ns = 0;
  uint64_t records = 0;
  bool is_empty = true;
};

// Ends rise within a chunk, so the records that end in a stretch of time lie side by side in each
// chunk. From the last end to the first, time is cut into stretches of some thousand records; each
// is sorted and united on its own, on so many threads, and what begins before its stretch covers
// the one before up to there. Whether ends rise is seen on the way: where they do not and the times
// of the chunks are not known, these are found and all is done once more; then chunks whose ends
// fall back (signal handlers) are sorted, each in a copy of its own. Of several files with
// thousands of chunks each file is united on its own, and the disjoint intervals of all are joined.
Active active_time(const std::vector<ActiveInput>& inputs, bool all_names, unsigned threads);

}  // namespace weir::reader
