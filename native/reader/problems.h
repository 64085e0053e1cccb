// SPDX-License-Identifier: Apache-2.0
// What was wrong with a file, where, and how often. Bounded: a hostile file cannot make the list
// long.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "reader/weir_reader.h"

namespace weir::reader {

enum class Reason : uint32_t {
  file_cut,
  no_chunk,
  chunk_kind,
  chunk_size,
  chunk_entry_bytes,
  chunk_used,
  chunk_cut,
  beyond_end,
  process_reference,
  process_missing,
  name_entry,
  name_twice,
  record_op,
  record_hole,
  record_layer,
  record_time,
  record_sum,
  record_size,
  record_routine,
  record_name,
  record_overflow,
  counter_key,
  counter_time,
  name_sum,
  chunk_sum,
  process_sum,
  file_sum,
  histogram_cut,
  calibration,
  more_problems,
  count_,
};

const char* text_of(Reason reason);

class Problems {
 public:
  static constexpr size_t kMost = 1000;

  // Add one more of a kind; the same kind as the last one within `near` bytes behind it only raises
  // its count.
  void add(Reason reason, uint64_t offset, uint64_t near = 0) {
    if (!list_.empty()) {
      auto& last = list_.back();
      if (last.reason == uint32_t(reason) &&
          (offset <= end_ + near || last.reason == uint32_t(Reason::more_problems))) {
        ++last.count;
        end_ = offset;
        return;
      }
    }
    end_ = offset;
    if (list_.size() == kMost - 1) reason = Reason::more_problems;
    if (list_.size() == kMost) {
      ++list_.back().count;
      return;
    }
    list_.push_back({offset, 1, uint32_t(reason), 0});
  }

  // What others have found, by its place in the file.
  void add(std::vector<weir_reader_problem> others) {
    std::stable_sort(others.begin(), others.end(),
                     [](const auto& a, const auto& b) { return a.offset < b.offset; });
    for (const auto& one : others) {
      add(Reason(one.reason), one.offset);
      list_.back().count += one.count - 1;
    }
  }

  const std::vector<weir_reader_problem>& list() const { return list_; }

 private:
  std::vector<weir_reader_problem> list_;
  uint64_t end_ = 0;
};

}  // namespace weir::reader
