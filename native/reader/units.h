// SPDX-License-Identifier: Apache-2.0
// Fortran statements by unit: which unit wrote which file, in how many statements.
#pragma once

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "reader/record.h"
#include "reader/slots.h"

namespace weir::reader {

class Units {
 public:
  void add(uint32_t process, uint64_t key, const Words& record) {
    const Key wanted{process, key, record.unit()};
    if (last_ == nullptr || wanted != last_key_) {
      last_ = &totals_[wanted];
      last_key_ = wanted;
    }
    last_->calls += 1;
    last_->bytes += record.has_failed() ? 0 : record.size();
    last_->ticks += record.duration();
  }

  std::vector<weir_reader_unit> sorted() const {
    std::vector<weir_reader_unit> list;
    for (const auto& [key, total] : totals_) {
      const auto& [process, kind, unit] = key;
      list.push_back({process, key::file(kind), unit, key::op(kind), key::flags(kind), total.calls,
                      total.bytes, total.ticks});
    }
    return list;
  }

 private:
  using Key = std::tuple<uint32_t, uint64_t, int64_t>;
  struct Total {
    uint64_t calls = 0, bytes = 0, ticks = 0;
  };
  std::map<Key, Total> totals_;  // its nodes stay where they are
  Key last_key_;
  Total* last_ = nullptr;
};

}  // namespace weir::reader
