// SPDX-License-Identifier: Apache-2.0
#include "reader/stretch.h"

#include <array>
#include <bit>
#include <utility>

namespace weir::reader {
namespace {

constexpr unsigned kStartShift = 32;
constexpr unsigned kMostBits = 11;   // of a pass: its counts stay in the first-level cache
constexpr size_t kFewKeys = 256;

}  // namespace

void Stretch::leave() const {
  for (const Range& range : ranges) {
    if (range.sorted == nullptr) range.source->leave(range.first, range.last, ranges.size());
  }
}

Covered Union::of(const Stretch& stretch) {
  Covered covered{stretch.from, stretch.until, {}};
  size_t most = 0;
  for (const Range& range : stretch.ranges) most += range.last - range.first;
  keys_.resize(std::max(keys_.size(), most));
  count_ = 0;
  for (const Range& range : stretch.ranges) take(range, covered);
  sort(stretch.until - stretch.from);
  if (count_ != 0) sweep(covered);
  return covered;
}

// Whether a gap lies before an interval cannot be foreseen: the part that it would end is written
// anyhow.
void Union::sweep(Covered& covered) {
  parts_.resize(std::max(parts_.size(), count_ + 1));
  size_t done = 0;
  auto begin = uint32_t(keys_[0] >> kStartShift), end = uint32_t(keys_[0]);
  for (size_t i = 1; i < count_; ++i) {
    const auto start = uint32_t(keys_[i] >> kStartShift);
    const bool is_gap = start > end;
    parts_[done] = {begin, end};
    done += is_gap;
    begin = is_gap ? start : begin;
    end = std::max(end, uint32_t(keys_[i]));
  }
  parts_[done++] = {begin, end};
  covered.parts.assign(parts_.begin(), parts_.begin() + ptrdiff_t(done));
}

// Neighbours that touch become one key: a call and the calls it is made of, a stream of calls
// without gaps.
void Union::take(const Range& range, Covered& covered) {
  const int64_t from = covered.from;
  const auto length = uint64_t(covered.until) - uint64_t(from);
  uint64_t begin = 1, end = 0;  // of the key being made; begin > end: none
  size_t count = count_;
  int64_t first = covered.first_ns;
  const auto one = [&](const Interval& interval) {
    const uint64_t its_end = uint64_t(interval.end) - uint64_t(from);
    if (its_end - 1 >= length) [[unlikely]] {
      ++covered.strays;
      return;
    }
    const uint64_t its_begin =
        interval.start <= from ? 0 : std::min(uint64_t(interval.start) - uint64_t(from), its_end);
    ++covered.records;
    first = std::min(first, interval.start);
    if (its_begin <= end && its_end >= begin && begin <= end) {
      begin = std::min(begin, its_begin);
      end = std::max(end, its_end);
      return;
    }
    if (begin <= end) keys_[count++] = begin << kStartShift | end;
    begin = its_begin;
    end = its_end;
  };
  if (range.sorted != nullptr) {
    for (uint32_t i = range.first; i < range.last; ++i) one((*range.sorted)[i]);
  } else {
    range.source->each(range.first, range.last, one);
  }
  if (begin <= end) keys_[count++] = begin << kStartShift | end;
  count_ = count;
  covered.first_ns = first;
}

// By start: digit by digit from the lowest, whose passes take no note of how many threads the keys
// come from.
void Union::sort(int64_t length_ns) {
  if (std::is_sorted(keys_.begin(), keys_.begin() + ptrdiff_t(count_))) return;
  if (count_ < kFewKeys) {
    std::sort(keys_.begin(), keys_.begin() + ptrdiff_t(count_));
    return;
  }
  other_.resize(keys_.size());
  const unsigned width = unsigned(std::bit_width(uint64_t(length_ns))),
                 passes = (width + kMostBits - 1) / kMostBits;
  const unsigned bits = (width + passes - 1) / passes;
  for (unsigned i = 0; i < passes; ++i) pass(kStartShift + i * bits, bits);
}

void Union::pass(unsigned shift, unsigned bits) {
  std::array<uint32_t, size_t{1} << kMostBits> places{};
  const Key mask = (Key{1} << bits) - 1;
  for (size_t i = 0; i < count_; ++i) ++places[keys_[i] >> shift & mask];
  uint32_t before = 0;
  for (size_t digit = 0; digit <= mask; ++digit) before += std::exchange(places[digit], before);
  for (size_t i = 0; i < count_; ++i) other_[places[keys_[i] >> shift & mask]++] = keys_[i];
  keys_.swap(other_);
}

}  // namespace weir::reader
