// SPDX-License-Identifier: Apache-2.0
// Bytes on their way to a file. Buffers keep their memory when they are filled again.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace weir::output::writer {

using Buffer = std::vector<char>;

// Records of one file; offset: place in the file, -1: not known yet.
struct Piece {
  int file = 0;
  Buffer bytes;
  int64_t offset = -1;
};

class Buffers {
 public:
  Buffer take() {
    if (free_.empty()) return {};
    Buffer one = std::move(free_.back());
    free_.pop_back();
    one.clear();
    return one;
  }
  void give(Buffer one) { free_.push_back(std::move(one)); }

 private:
  std::vector<Buffer> free_;
};

}  // namespace weir::output::writer
