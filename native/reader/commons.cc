// SPDX-License-Identifier: Apache-2.0
// Common values of many trace files (weir_commons.h): a list of the different ones, and a hash
// table of their places in it.
#include <algorithm>
#include <memory>
#include <numeric>
#include <tuple>

#include "reader/handle.h"
#include "reader/places.h"
#include "reader/weir_commons.h"

using namespace weir::reader;

struct weir_commons {
 public:
  explicit weir_commons(const weir_commons_limits& limits) : limits_(limits) {}

  void add(const weir_reader_common* rows, uint64_t count, const int32_t* names, uint32_t way) {
    weir_commons_value some[kAtOnce];
    uint64_t hashes[kAtOnce];
    for (uint64_t i = 0; i < count;) {
      size_t taken = 0;
      for (; i < count && taken < kAtOnce; ++i) {
        const weir_reader_common& row = rows[i];
        if ((row.kind & 1) != way) continue;
        const bool is_backward = row.kind >= WEIR_READER_READ_BACKWARD;
        some[taken] = {int64_t{names[row.file]} * 2 + way, row.kind >= WEIR_READER_READ_STRIDE,
                       int64_t(is_backward ? 0 - row.value : row.value), int64_t(row.count)};
        hashes[taken] = hash_of(some[taken]);
        places_.prefetch(hashes[taken++]);
      }
      for (size_t at = 0; at < taken; ++at) add(some[at], hashes[at]);
      waiting_ += taken;
    }
    if (waiting_ > std::max<uint64_t>(limits_.added_at_once, looked_over_)) look_over();
  }

  void look_over() {
    for (const uint64_t most : limits_.kept) {
      if (values_.size() <= limits_.most) break;
      is_full_ = true;
      keep(most);
    }
    looked_over_ = values_.size();
    waiting_ = 0;
  }

  bool is_full() const { return is_full_; }
  const SpillVector<weir_commons_value>& values() const { return values_; }

 private:
  static constexpr size_t kAtOnce = 32;  // whose slots are asked for ahead

  static uint64_t hash_of(const weir_commons_value& one) {
    return weir::reader::hash_of(uint64_t(one.key) << 1 | uint64_t(one.is_stride),
                                 uint64_t(one.value));
  }

  void add(const weir_commons_value& one, uint64_t hash) {
    const auto has_key = [&](uint32_t place) {
      const weir_commons_value& known = values_[place];
      return known.key == one.key && known.value == one.value && known.is_stride == one.is_stride;
    };
    const uint32_t next = uint32_t(values_.size());
    const uint32_t place = places_.find_or_add(hash, next, has_key);
    if (place == next) {
      values_.push_back(one);
    } else {
      values_[place].count += one.count;
    }
  }

  // So many of each key and kind: by count, then the larger values first.
  void keep(uint64_t most) {
    places_.clear();
    SpillVector<uint64_t> ends = by_group();
    size_t kept = 0, begin = 0;
    for (const size_t end : ends) {
      size_t of_group = end - begin;
      const auto first = values_.begin() + ptrdiff_t(begin);
      if (of_group > most) {
        std::nth_element(first, first + ptrdiff_t(most), first + ptrdiff_t(of_group),
                         [](const auto& a, const auto& b) {
                           return std::tie(b.count, b.value) < std::tie(a.count, a.value);
                         });
        of_group = most;
      }
      std::move(first, first + ptrdiff_t(of_group), values_.begin() + ptrdiff_t(kept));
      kept += of_group;
      begin = end;
    }
    values_.resize(kept);
    const auto never = [](uint32_t) { return false; };
    for (size_t i = 0; i < kept; ++i) places_.find_or_add(hash_of(values_[i]), uint32_t(i), never);
  }

  // Puts the values of one key and kind side by side; returns where each group ends.
  SpillVector<uint64_t> by_group() {
    const auto group_of = [](const weir_commons_value& one) {
      return uint64_t(one.key + 2) << 1 | uint64_t(one.is_stride);  // no name is -1
    };
    uint64_t groups = 0;
    for (const auto& one : values_) groups = std::max(groups, group_of(one) + 1);
    SpillVector<uint64_t> ends(groups + 1);
    for (const auto& one : values_) ++ends[group_of(one) + 1];
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    SpillVector<weir_commons_value> ordered(values_.size());
    for (const auto& one : values_) ordered[ends[group_of(one)]++] = one;
    values_.swap(ordered);
    ends.pop_back();
    return ends;
  }

  const weir_commons_limits limits_;
  SpillVector<weir_commons_value> values_;
  PlaceTable places_;
  uint64_t waiting_ = 0, looked_over_ = 0;
  bool is_full_ = false;
};

WEIR_API weir_commons* weir_commons_create(const weir_commons_limits* limits) {
  std::unique_ptr<weir_commons> made;
  guarded([&] { made = std::make_unique<weir_commons>(*limits); });
  return made.release();
}

WEIR_API void weir_commons_destroy(weir_commons** commons) {
  delete *commons;
  *commons = nullptr;
}

WEIR_API int weir_commons_add(weir_commons* commons, const weir_reader_common* rows, uint64_t count,
                              const int32_t* names, uint32_t way) {
  return guarded([&] { commons->add(rows, count, names, way); });
}

WEIR_API uint32_t weir_commons_is_full(const weir_commons* commons) { return commons->is_full(); }

WEIR_API const weir_commons_value* weir_commons_get(weir_commons* commons, uint64_t* count) {
  if (guarded([&] { commons->look_over(); }) != 0) return nullptr;
  *count = commons->values().size();
  static const weir_commons_value none = {};
  return *count == 0 ? &none : commons->values().data();
}
