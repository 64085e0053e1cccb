// SPDX-License-Identifier: Apache-2.0
// The most common sizes and strides of each file, counted over trace files in bounded memory.
#pragma once

#include <span>

#include "reader/spill.h"
#include "reader/weir_accesses.h"

namespace weir::reader {

// As weir_accesses_choice has them.
struct CommonLimits {
  uint64_t most_values, added_at_once;
  uint64_t kept[2];
};

// Of weir_reader_common: the value of a stride, below 0 where it is backward.
inline int64_t signed_value(const weir_reader_common& one) {
  return int64_t(one.kind >= WEIR_READER_READ_BACKWARD ? 0 - one.value : one.value);
}
inline bool is_stride(const weir_reader_common& one) { return one.kind >= WEIR_READER_READ_STRIDE; }
inline uint32_t way_of(const weir_reader_common& one) { return one.kind & 1; }

// As long as there are few different values all are kept, and counts are exact. When there are more
// than most_values, only the most common ones of each file are: a value that is rare on each of
// many nodes may then be missed, or counted from where it was first seen among them.
//
// What comes waits behind what is known, and is put with it at each look over: both are gone
// through from end to end, which leaves pages in memory for a while, where a hash table of all
// values asks for all pages all the time.
class CommonValues {
 public:
  explicit CommonValues(const CommonLimits& limits) : limits_(limits) {}

  // Rows of one trace file, of which those of one direction count. names: by access.
  void add(std::span<const weir_reader_common> rows, std::span<const int32_t> names, uint32_t way);

  // Whether rare values were left out.
  bool is_full() const { return is_full_; }

  // All that were kept, each once, by key and kind. cost: a look over them.
  SpillVector<weir_accesses_common> take();

 private:
  // group: a key and a kind.
  struct Value {
    uint64_t group;
    int64_t value, count;
  };

  void look_over();
  void fold();
  void keep(uint64_t most);
  void put_by_group();

  const CommonLimits limits_;
  SpillVector<Value> values_;  // those that wait behind those that were looked over
  uint64_t waiting_ = 0, looked_over_ = 0;
  bool is_full_ = false;
};

}  // namespace weir::reader
