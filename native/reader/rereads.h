// SPDX-License-Identifier: Apache-2.0
// What ranks did with files, from the records: how much of it when, and how many different bytes
// they read. Both go over all records on several threads, chunk by chunk; what was read of the
// mapping is left behind. Bytes move at the lowest level seen (POSIX, stdio). Which records belong
// together (a group: of one name, by one rank) is decided by python/weir/report/flow/rereads.py.
#pragma once

#include <span>
#include <vector>

#include "reader/index.h"

namespace weir::reader {

struct ReadsInput {
  const Mapping* file;
  const Index* index;  // scanned: its chunks know whether they have records
  weir_reader_clock clock;
  // Sorted by process and file; records of other files are left out.
  std::span<const weir_reader_read_of> files;
};

// Adds to uses[first_cut[g] + g + i] what group g did when i of its cuts lay before:
// cuts[first_cut[g]] ... cuts[first_cut[g + 1] - 1], rising. A record that begins just at a cut
// comes before it. op_class: 'R', 'W', or 'M' for all other I/O. cost: one pass.
void uses_between(const std::vector<ReadsInput>& inputs, unsigned threads, char op_class,
                  std::span<const uint64_t> first_cut, std::span<const int64_t> cuts,
                  weir_reader_use* uses);

// Adds for each group what it read at known offsets and how many different bytes that was; for each
// name how many its groups read together. name_of: of each group, rising. cost: one pass, and
// memory for the disjoint stretches of the files that were read, up to `room` of them; where there
// are more, a pass for each part of the names and offsets that fits.
void read_extents(const std::vector<ReadsInput>& inputs, unsigned threads,
                  std::span<const uint32_t> name_of, uint64_t room, weir_reader_extent* of_groups,
                  uint64_t* of_names);

}  // namespace weir::reader
