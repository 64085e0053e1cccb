// SPDX-License-Identifier: Apache-2.0
// Unions of intervals that come chunk by chunk, joined from one limit in time to the next.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace weir::reader {

struct Block {
  int64_t begin, end;
};
using Blocks = std::vector<Block>;

// Makes disjoint blocks of intervals that come in the order of their ends, as they mostly do.
class Growing {
 public:
  void add(int64_t begin, int64_t end) {
    end = std::max(begin, end);  // a damaged clock may carry times around
    if (blocks_.empty() || begin > blocks_.back().end) [[likely]] {
      blocks_.push_back({begin, end});
    } else {
      join(begin, end);
    }
  }

  // Begins rise. next: where the blocks to come are put.
  Blocks take(Blocks next);
  bool is_empty() const { return blocks_.empty(); }

 private:
  void join(int64_t begin, int64_t end);

  Blocks blocks_;
  bool is_sorted_ = true;
};

// Blocks in memory that are read one after the other; begins rise.
using Parts = std::vector<std::span<const Block>>;

// Blocks of one kind: those of chunks wait until all that begin before a limit are there.
class Pool {
 public:
  explicit Pool(uint32_t kind) : kind(kind) {}

  void add(Blocks blocks);

  // Makes `joined` of what begins before the limit, which rises; no block that is added later
  // begins before it. spare: gets memory that is no longer used.
  void join_until(int64_t limit, std::vector<Blocks>& spare);

  const uint32_t kind;
  Blocks joined;  // disjoint, rising, up to the limit
  int64_t last_ns = std::numeric_limits<int64_t>::min();  // where the one before them ends

 private:
  // What a thread does follows what it did before: as few runs as there are threads.
  struct Run {
    std::vector<Blocks> parts;
    size_t done = 0;  // blocks of the first part
  };

  static Parts before(const Run& run, int64_t limit);
  static void drop(Run& run, int64_t limit, std::vector<Blocks>& spare);

  std::vector<Run> runs_;
  std::optional<Block> open_;  // of the last block what lies behind the limit
};

// The blocks of a and b, and of `open`, which begins before them, as disjoint ones.
void merge(const Parts& a, const Parts& b, std::optional<Block> open, Blocks& both);

// How much of some disjoint blocks lies before timestamps that rise.
class Measure {
 public:
  explicit Measure(const Blocks& blocks) : blocks_(blocks) {}

  int64_t until(int64_t at) {
    for (; next_ < blocks_.size() && blocks_[next_].begin < at; ++next_) {
      if (next_ > 0) before_ += blocks_[next_ - 1].end - blocks_[next_ - 1].begin;
    }
    return next_ == 0 ? 0 : before_ + last(at, 0) - blocks_[next_ - 1].begin;
  }

  // Of the timestamp that was asked for last: where the last block before it ends, cut there;
  // otherwise: where there is none.
  int64_t last(int64_t at, int64_t otherwise) const {
    return next_ > 0 ? std::min(blocks_[next_ - 1].end, at) : otherwise;
  }

 private:
  const Blocks& blocks_;
  size_t next_ = 0;
  int64_t before_ = 0;
};

// The same of the union of two: what the few blocks of b have in common with a counts once.
class MeasureOfBoth {
 public:
  MeasureOfBoth(const Blocks& a, const Blocks& b) : a_(a), b_(b), blocks_(b) {}

  int64_t until(int64_t at) {
    for (; next_ < blocks_.size() && blocks_[next_].end <= at; ++next_, is_in_ = false)
      shared_ += since_entry(blocks_[next_].end);
    const bool is_within = next_ < blocks_.size() && blocks_[next_].begin < at;
    const int64_t shared = shared_ + (is_within ? since_entry(at) : 0);
    return a_.until(at) + b_.until(at) - shared;
  }

  int64_t last(int64_t at, int64_t otherwise) const {
    return std::max(a_.last(at, otherwise), b_.last(at, otherwise));
  }

 private:
  // How much of a lies in the block at hand before a timestamp.
  int64_t since_entry(int64_t at) {
    if (!is_in_) entered_ = a_.until(blocks_[next_].begin);
    is_in_ = true;
    return a_.until(at) - entered_;
  }

  Measure a_, b_;
  const Blocks& blocks_;
  size_t next_ = 0;
  int64_t shared_ = 0, entered_ = 0;
  bool is_in_ = false;
};

}  // namespace weir::reader
