// SPDX-License-Identifier: Apache-2.0
// When the records of a chunk were made, and whether their ends rise: all that active time may have
// to know of chunks.
#pragma once

#include <algorithm>

#include "reader/index.h"
#include "reader/ops.h"
#include "reader/record.h"

namespace weir::reader {

// Calls of known layers.
inline bool is_call(uint8_t op, uint8_t layer) {
  const auto treatment = kOps[op].treatment;
  return (treatment == Treatment::call || treatment == Treatment::fortran ||
          treatment == Treatment::silent) &&
         is_known_layer(layer);
}

inline bool is_timed_call(const Words& record) { return is_call(record.op(), record.layer()); }

// Whether a chunk has timed calls. before: the times of chunks are known.
inline bool has_calls(const weir_reader_chunk& chunk) {
  return chunk.kind == uint32_t(wire::Kind::kEvents) && chunk.first_ticks <= chunk.last_ticks;
}

// The times of a chunk's calls, taken one after the other.
class ChunkTimes {
 public:
  void take(uint64_t start, uint64_t end) {
    disordered_ |= end < previous_end_;
    previous_end_ = end;
    first_ = std::min(first_, start);
    last_ = std::max(last_, end);
  }

  void take_op(uint8_t op) { silent_ |= kOps[op].treatment == Treatment::silent; }

  void give(weir_reader_chunk& chunk) const {
    chunk.first_ticks = first_;
    chunk.last_ticks = last_;
    chunk.disordered = disordered_;
    chunk.silent = silent_;
  }

 private:
  uint64_t first_ = ~uint64_t{0}, last_ = 0, previous_end_ = 0;
  bool disordered_ = false, silent_ = false;
};

// The times of all chunks, as scan() finds them, without its tables. Nothing to do where they are
// known.
// cost: one pass on so many threads.
void find_times(const Mapping& file, Index& index, unsigned threads);

}  // namespace weir::reader
