// SPDX-License-Identifier: Apache-2.0
// Walks a mapped file once from chunk to chunk: which chunks are there, whose they are, and how
// much of each may be read.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "reader/checks.h"
#include "reader/mapping.h"
#include "reader/problems.h"

//
// What is handed to functions of this room stays the caller's. They may throw (no memory, no
// thread); reader.cc, the C ABI, turns that into a failure. One thread at a time for each file.
namespace weir::reader {

struct Index {
  weir_reader_header header{};
  std::vector<weir_reader_chunk> chunks;
  std::vector<weir_reader_process> processes;
  bool has_times = false;  // of the chunks (times.h)
  uint32_t version = 0;    // of the file
  Checks checks;
};

// Header page into `index`. Empty string on success; otherwise why the whole file is refused, and
// the byte in `place`.
[[nodiscard]] std::string read_header(const Mapping& file, Index& index, uint64_t& place);

// All chunks and processes. before: read_header succeeded.
void walk_chunks(const Mapping& file, Index& index, Problems& problems);

}  // namespace weir::reader
