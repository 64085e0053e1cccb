// SPDX-License-Identifier: Apache-2.0
// How each process accesses each file: in order, with strides, at random; sizes, alignment,
// switches.
#pragma once

#include <span>
#include <vector>

#include "reader/index.h"
#include "reader/names.h"

namespace weir::reader {

struct Accesses {
  std::vector<weir_reader_access> files;   // by process, then in the order of the first access
  std::vector<weir_reader_common> common;  // by index in `files`
};

// What common values are of: those of processes with one text are added up, and stand with the
// first of them that has some; or of each process; or as first, and of each text and kind the four
// most common.
enum class AccessCommons { by_text, by_process, few_by_text };

inline constexpr weir_reader_alignment kLostAlignment = {4096, 0};  // of names that are lost

// Whose accesses are found.
struct AccessChoice {
  std::span<const uint8_t> processes;  // 0: not this one; empty: all
  bool all_names = false;
  AccessCommons commons = AccessCommons::by_text;
};

// Reads and writes of the lowest level seen, in the order in which they ended in their process.
// alignment: of the file of each text.
// cost: one pass over all records on so many threads; memory for the files of processes with
// accesses, however many records there are. before: a scan, or find_times.
Accesses find_accesses(const Mapping& file, const Index& index, const Names& names,
                       std::span<const weir_reader_alignment> alignment, AccessChoice choice,
                       unsigned threads);

}  // namespace weir::reader
