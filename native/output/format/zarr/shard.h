// SPDX-License-Identifier: Apache-2.0
// One shard being written: chunks one behind the other as they come, and at the end of the file the
// index: offset and bytes of each place, all ones where there is no chunk, and its CRC-32C. A shard
// without its index is not readable: it is complete or it is not there.
#pragma once

#include <string>
#include <vector>

#include "output/format/posix_file.h"

namespace weir::output::zarr {

class Shard {
 public:
  // present: chunks that it will have.
  static Result<Shard> create(const std::string& path, int64_t places, int64_t present);

  Status append(int64_t place, const char* data, size_t bytes);
  bool complete() const { return missing_ == 0; }
  // Writes the index and closes.
  Status finish(bool sync);

 private:
  PosixFile file_;
  std::vector<uint64_t> index_;
  int64_t missing_ = 0, bytes_ = 0;
};

}  // namespace weir::output::zarr
