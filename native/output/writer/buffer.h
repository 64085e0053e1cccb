// SPDX-License-Identifier: Apache-2.0
// Bytes on their way to a file. Buffers keep their memory when they are filled again, by the same
// file, whose step is about as large as the one before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace weir::output::writer {

using Buffer = std::vector<char>;

// Records of one file: those that were copied, then those that are the caller's. offset: place in
// the file, -1: not known yet.
struct Piece {
  int file = 0;
  Buffer bytes;
  int64_t offset = -1;
  std::vector<std::span<const char>> lent = {};

  size_t size() const {
    size_t all = bytes.size();
    for (const auto& part : lent) all += part.size();
    return all;
  }
};

class Buffers {
 public:
  Buffer take(int file) {
    std::vector<Buffer>& free = of(file);
    if (free.empty()) return {};
    Buffer one = std::move(free.back());
    free.pop_back();
    one.clear();
    return one;
  }
  // For a piece whose file is not known yet.
  Buffer take_any() {
    for (size_t file = 0; file < free_.size(); ++file)
      if (!free_[file].empty()) return take(static_cast<int>(file));
    return {};
  }
  void give(int file, Buffer one) {
    if (one.capacity() > 0) of(file).push_back(std::move(one));
  }

 private:
  std::vector<Buffer>& of(int file) {
    const auto at = static_cast<size_t>(file);
    if (free_.size() <= at) free_.resize(at + 1);
    return free_[at];
  }

  std::vector<std::vector<Buffer>> free_;  // by file
};

}  // namespace weir::output::writer
