// SPDX-License-Identifier: Apache-2.0
// An owner's compressed chunks of the record that is being written. Where they go is known when all
// sizes are; until then they wait in memory, and beyond a limit in a file without a name beside the
// output, so that memory does not grow with the record.
#pragma once

#include <vector>

#include "output/format/posix_file.h"

namespace weir::output::netcdf4 {

struct PackedChunk {
  int64_t variable, band, chunk, bytes;
  int64_t at;  // in the memory or in the file
  bool spooled;
};

class Packed {
 public:
  // path: of the output file.
  explicit Packed(std::string path, size_t limit_bytes = size_t{64} << 20)
      : path_(std::move(path)), limit_(limit_bytes) {}

  // Takes the bytes of memory() from `begin` to its end as a chunk.
  std::vector<char>& memory() { return memory_; }
  Status take(int64_t variable, int64_t band, int64_t chunk, size_t begin);
  const std::vector<PackedChunk>& chunks() const { return chunks_; }
  Status write_to(PosixFile& file, const PackedChunk& chunk, int64_t address);
  void clear();

 private:
  Status spool();

  std::string path_;
  size_t limit_;
  std::vector<char> memory_;
  std::vector<PackedChunk> chunks_;
  PosixFile spool_;
  int64_t spool_bytes_ = 0;
};

}  // namespace weir::output::netcdf4
