// SPDX-License-Identifier: Apache-2.0
// A list of the different values, and a hash table of their places in it.
#include "reader/commons.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace weir::reader {
namespace {

constexpr size_t kAtOnce = 32;  // whose slots are asked for ahead

}  // namespace

void CommonValues::add(std::span<const weir_reader_common> rows, std::span<const int32_t> names,
                       uint32_t way) {
  weir_accesses_common some[kAtOnce];
  uint64_t hashes[kAtOnce];
  for (size_t i = 0; i < rows.size();) {
    size_t taken = 0;
    for (; i < rows.size() && taken < kAtOnce; ++i) {
      const weir_reader_common& row = rows[i];
      if (way_of(row) != way) continue;
      some[taken] = {int64_t{names[row.file]} * 2 + way, is_stride(row), signed_value(row),
                     int64_t(row.count)};
      hashes[taken] = hash_of(some[taken]);
      places_.prefetch(hashes[taken++]);
    }
    for (size_t at = 0; at < taken; ++at) add(some[at], hashes[at]);
    waiting_ += taken;
  }
  if (waiting_ > std::max<uint64_t>(limits_.added_at_once, looked_over_)) look_over();
}

SpillVector<weir_accesses_common> CommonValues::take() {
  look_over();
  places_.clear();
  return std::exchange(values_, {});
}

void CommonValues::look_over() {
  for (const uint64_t most : limits_.kept) {
    if (values_.size() <= limits_.most_values) break;
    is_full_ = true;
    keep(most);
  }
  looked_over_ = values_.size();
  waiting_ = 0;
}

uint64_t CommonValues::hash_of(const weir_accesses_common& one) {
  return weir::reader::hash_of(uint64_t(one.key) << 1 | uint64_t(one.is_stride),
                               uint64_t(one.value));
}

void CommonValues::add(const weir_accesses_common& one, uint64_t hash) {
  const auto has_key = [&](uint32_t place) {
    const weir_accesses_common& known = values_[place];
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
void CommonValues::keep(uint64_t most) {
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
SpillVector<uint64_t> CommonValues::by_group() {
  const auto group_of = [](const weir_accesses_common& one) {
    return uint64_t(one.key + 2) << 1 | uint64_t(one.is_stride);  // no name is -1
  };
  uint64_t groups = 0;
  for (const auto& one : values_) groups = std::max(groups, group_of(one) + 1);
  SpillVector<uint64_t> ends(groups + 1);
  for (const auto& one : values_) ++ends[group_of(one) + 1];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  SpillVector<weir_accesses_common> ordered(values_.size());
  for (const auto& one : values_) ordered[ends[group_of(one)]++] = one;
  values_.swap(ordered);
  ends.pop_back();
  return ends;
}

}  // namespace weir::reader
