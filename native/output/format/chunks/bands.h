// SPDX-License-Identifier: Apache-2.0
// Gathers an owner's ranges of elements until a band of chunks is complete, and hands it on. A
// range that is a whole band is handed on as it is. Memory: the bands that have begun, which is one
// a variable when ranges ascend within a band, as the engine's do.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "output/core/status.h"
#include "output/format/chunks/layout.h"

namespace weir::output::chunks {

class Bands {
 public:
  // emit(record, band, elements of it)
  using Emit = std::function<Status(int64_t record, int64_t band, const char* data)>;

  Bands(const Layout& layout, size_t element_size) : layout_(layout), size_(element_size) {}

  Status add(int64_t record, int64_t first, int64_t count, const void* data, const Emit& emit);
  // Whether nothing has begun without being completed.
  bool empty() const { return open_.empty(); }

 private:
  struct Band {
    std::vector<char> data;
    int64_t missing = 0;
  };
  const Layout& layout_;
  size_t size_;
  std::map<std::pair<int64_t, int64_t>, Band> open_;  // by record and band
  std::vector<char> spare_;  // of a band that is done: fresh memory costs ten times a copy
};

}  // namespace weir::output::chunks
