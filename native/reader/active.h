// SPDX-License-Identifier: Apache-2.0
// Exact active time: the length of the union of all I/O intervals of several files.
#pragma once

#include <vector>

#include "reader/names.h"

namespace weir::reader {

struct ActiveInput {
  const Mapping* file;
  const Index* index;  // scanned: its chunks know their times
  const Names* names;
  weir_reader_clock clock;
  const uint8_t* mask;  // a byte per process, 0 leaves it out; null: all
};

struct Active {
  int64_t total_ns = 0, first_ns = 0, last_ns = 0;
  uint64_t records = 0;
  bool is_empty = true;
};

// Ends rise within a chunk, so a chunk read backwards is a stream sorted by falling end, and the union of all streams is
// one merge without copies. Chunks enter the merge when it reaches their last end: it holds as many streams as threads
// are in I/O at once. Chunks whose ends fall back (signal handlers) are sorted, each in a copy of its own. A union is associative:
// each thread merges a stretch of time.
Active active_time(const std::vector<ActiveInput>& inputs, bool all_names, unsigned threads);

}  // namespace weir::reader
