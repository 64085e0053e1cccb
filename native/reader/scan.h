// SPDX-License-Identifier: Apache-2.0
// The one pass over all records and counters of a file: everything that tables are made of, but for
// active time.
#pragma once

#include <deque>

#include "reader/names.h"

namespace weir::reader {

struct Scanned {
  std::vector<weir_reader_row> rows;
  std::vector<weir_reader_histogram> histograms;
  std::vector<weir_reader_unit> units;
  std::vector<weir_reader_sync> syncs;
};

// Also fills in the times and order of the chunks, and the counts of the processes.
// cost: one pass, the processes shared out over the threads; memory for a cache line per process,
// file and operation.
Scanned scan(const Mapping& file, Index& index, const Names& names, Problems& problems,
             unsigned threads);

// The rows of the processes from `first` to before `end`, once more.
// cost: a pass over their records. before: end is at most the number of processes.
std::vector<weir_reader_row> rows_of(const Mapping& file, const Index& index, const Names& names,
                                     uint32_t first, uint32_t end);

// The syncs alone, as scan() finds them.
// cost: a pass over one word of each record.
std::vector<weir_reader_sync> syncs_of(const Mapping& file, Index& index);

}  // namespace weir::reader
