// SPDX-License-Identifier: Apache-2.0
// The union of many small trace files (active.h), file by file: the blocks of each chunk are joined
// two by two, then those of all files.
#pragma once

#include <vector>

#include "reader/active.h"
#include "reader/hidden.h"

namespace weir::reader {

using HiddenNames = std::vector<Hidden>;  // of each process of a file

inline HiddenNames hidden_of(const ActiveInput& input) {
  HiddenNames hidden;
  for (uint32_t p = 0; p < input.index->processes.size(); ++p)
    hidden.emplace_back(*input.names, p);
  return hidden;
}

// Hands each chunk with records that may count to `take`, and the names whose records do not; null:
// all do.
template <class Take>
void each_counted_chunk(const ActiveInput& input, bool all_names, const HiddenNames& hidden,
                        Take take) {
  for (const auto& chunk : input.index->chunks) {
    if (chunk.kind != uint32_t(wire::Kind::kEvents) ||
        (input.index->has_times && chunk.first_ticks > chunk.last_ticks))
      continue;
    if (input.mask != nullptr && input.mask[chunk.process] == 0) continue;
    const Hidden& names = hidden[chunk.process];
    take(chunk, all_names || names.is_empty() ? nullptr : &names);
  }
}

// Whether there are so many chunks that all of them at once, in the order of time, need much memory
// and time, and files small enough for all blocks of one.
bool are_small(const std::vector<ActiveInput>& inputs);

// False when there are too many blocks.
// cost: one pass over all records on so many threads; memory for the blocks of a file on each, and
// of all.
bool active_by_file(const std::vector<ActiveInput>& inputs, bool all_names, unsigned threads,
                    Active& active);

}  // namespace weir::reader
