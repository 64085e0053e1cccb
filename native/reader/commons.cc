// SPDX-License-Identifier: Apache-2.0
#include "reader/commons.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace weir::reader {
namespace {

uint64_t group_of(int64_t key, bool is_stride) {
  return uint64_t(key + 2) << 1 | uint64_t(is_stride);  // no name is -1
}

// Hands each stretch of values of one group to `take`.
template <class Values, class Take>
void each_group(Values& values, Take take) {
  for (auto begin = values.begin(); begin != values.end();) {
    const auto end = std::find_if(begin, values.end(),
                                  [&](const auto& one) { return one.group != begin->group; });
    take(begin, end);
    begin = end;
  }
}

constexpr auto kByValue = [](const auto& a, const auto& b) { return a.value < b.value; };

}  // namespace

void CommonValues::add(std::span<const weir_reader_common> rows, std::span<const int32_t> names,
                       uint32_t way) {
  const size_t before = values_.size();
  for (const weir_reader_common& row : rows) {
    if (way_of(row) != way) continue;
    values_.push_back({group_of(int64_t{names[row.file]} * 2 + way, is_stride(row)),
                       signed_value(row), int64_t(row.count)});
  }
  waiting_ += values_.size() - before;
  if (waiting_ > std::max<uint64_t>(limits_.added_at_once, looked_over_)) look_over();
}

SpillVector<weir_accesses_common> CommonValues::take() {
  look_over();
  SpillVector<weir_accesses_common> made;
  made.reserve(values_.size());
  for (const Value& one : values_) {
    made.push_back({int64_t(one.group >> 1) - 2, int64_t(one.group & 1), one.value, one.count});
  }
  values_ = {};
  return made;
}

void CommonValues::look_over() {
  fold();
  for (const uint64_t most : limits_.kept) {
    if (values_.size() <= limits_.most_values) break;
    is_full_ = true;
    keep(most);
  }
  looked_over_ = values_.size();
  waiting_ = 0;
}

// Makes one of all that have the same group and value: by group, then by value.
void CommonValues::fold() {
  put_by_group();
  auto out = values_.begin();
  each_group(values_, [&](auto begin, auto end) {
    if (!std::is_sorted(begin, end, kByValue)) std::sort(begin, end, kByValue);
    for (auto first = out; begin != end; ++begin) {
      if (out == first || std::prev(out)->value != begin->value) *out++ = *begin;
      else std::prev(out)->count += begin->count;
    }
  });
  values_.erase(out, values_.end());
}

// So many of each group: by count, then the larger values first.
void CommonValues::keep(uint64_t most) {
  auto out = values_.begin();
  each_group(values_, [&](auto begin, auto end) {
    if (uint64_t(end - begin) > most) {
      std::nth_element(begin, begin + ptrdiff_t(most), end, [](const auto& a, const auto& b) {
        return std::tie(b.count, b.value) < std::tie(a.count, a.value);
      });
      end = begin + ptrdiff_t(most);
      std::sort(begin, end, kByValue);
    }
    out = std::move(begin, end, out);
  });
  values_.erase(out, values_.end());
}

// With room for some that come.
void CommonValues::put_by_group() {
  uint64_t groups = 0;
  for (const Value& one : values_) groups = std::max(groups, one.group + 1);
  SpillVector<uint64_t> next(groups + 1);
  for (const Value& one : values_) ++next[one.group + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  SpillVector<Value> ordered;
  ordered.reserve(values_.size() + limits_.added_at_once);
  ordered.resize(values_.size());
  for (const Value& one : values_) ordered[next[one.group]++] = one;
  values_.swap(ordered);
}

}  // namespace weir::reader
