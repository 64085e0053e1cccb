// SPDX-License-Identifier: Apache-2.0
// I/O over time: what happened in each slice of time, by row (of processes) and by group (of
// files).
#pragma once

#include <vector>

#include "reader/names.h"

namespace weir::reader {

struct TilesInput {
  const Mapping* file;
  Index* index;
  const Names* names;
  weir_reader_clock clock;
  const uint32_t* row_of;    // a row per process, WEIR_READER_NO_ROW leaves it out
  const uint8_t* group_of;   // a group per text, or null: all files are of group 0; so are records
                             // without a name
};

// One pass over the records that count as I/O (as in active.h), which finds the chunks' times as
// well (times.h). What lies outside the window is left out. by_row and by_group hold rows x bins
// and groups x bins tiles, zero at first; rows and groups beyond are left out.
// cost: one pass on window.threads threads, whose copies of tiles take up to 64 MB; a record that
//   lasts over many bins costs a step for each of them.
void make_tiles(const std::vector<TilesInput>& inputs, bool all_names,
                const weir_reader_window& window, weir_reader_tile* by_row,
                weir_reader_tile* by_group);

}  // namespace weir::reader
