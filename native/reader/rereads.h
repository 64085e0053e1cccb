// SPDX-License-Identifier: Apache-2.0
// What tasks read of files, from the records of their reads: how much when, and how many different bytes. Both go over all records on
// several threads, chunk by chunk; what was read of the mapping is left behind.
// Reads are those of the lowest level seen (POSIX, stdio) that moved bytes. Which of them belong together (a group: of one name, by one task)
// is decided by python/weir/analysis/rereads.py.
#pragma once

#include <span>
#include <vector>

#include "reader/index.h"

namespace weir::reader {

struct ReadsInput {
  const Mapping* file;
  const Index* index;  // scanned: its chunks know whether they have records
  weir_reader_clock clock;
  std::span<const weir_reader_read_of> files;  // sorted by process and file; reads of other files are left out
};

// Adds to bytes[first_cut[g] + g + i] what group g read when i of its cuts lay before: cuts[first_cut[g]] ... cuts[first_cut[g + 1] - 1],
// rising. A read that begins just at a cut comes before it. cost: one pass.
void reads_between(const std::vector<ReadsInput>& inputs, unsigned threads, std::span<const uint64_t> first_cut,
                   std::span<const int64_t> cuts, uint64_t* bytes);

// Adds for each group what it read at known offsets and how many different bytes that was; for each name how many its groups read together.
// name_of: of each group, rising. cost: one pass, and memory for the disjoint stretches of the files that were read, up to `room` of them;
// where there are more, a pass for each part of the names and offsets that fits.
void read_extents(const std::vector<ReadsInput>& inputs, unsigned threads, std::span<const uint32_t> name_of, uint64_t room,
                  weir_reader_extent* of_groups, uint64_t* of_names);

}  // namespace weir::reader
