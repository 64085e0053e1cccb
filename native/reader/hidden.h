// SPDX-License-Identifier: Apache-2.0
// Which ids of a process are not files.
#pragma once

#include <algorithm>
#include <vector>

#include "reader/names.h"

namespace weir::reader {

// Almost always a handful of small numbers.
class Hidden {
 public:
  Hidden(const Names& names, uint32_t process) {
    names.each(process, [&](uint32_t id, uint32_t text) {
      if (names.texts[text].is_file == 0) ids_.push_back(id);
    });
    std::sort(ids_.begin(), ids_.end());
    for (uint32_t id : ids_) {
      if (id < kDense) dense_.resize(std::max<size_t>(dense_.size(), id + 1));
    }
    for (uint32_t id : ids_) {
      if (id < kDense) dense_[id] = 1;
    }
  }

  bool is_empty() const { return ids_.empty(); }

  bool hides(uint32_t id) const {
    if (id < dense_.size()) return dense_[id] != 0;
    return id >= kDense && std::binary_search(ids_.begin(), ids_.end(), id);
  }

 private:
  static constexpr uint32_t kDense = 1 << 20;
  std::vector<uint32_t> ids_;
  std::vector<uint8_t> dense_;
};

}  // namespace weir::reader
