// SPDX-License-Identifier: Apache-2.0
// Which points of a grid a rank has, and where they lie in its memory: a block (nothing is stored
// but its edges) or runs, that is stretches that are contiguous in the grid and in memory, sorted
// by their place in the grid.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "output/core/status.h"
#include "output/model/catalogue.h"

namespace weir::output {

struct Run {
  int64_t global = 0;
  uint32_t local = 0, count = 0;
};

class Pieces {
 public:
  Pieces() = default;
  static Result<Pieces> of(const Decomposition& decomposition, const Grid& grid);
  static Result<Pieces> decode(std::span<const char> bytes);
  void encode(std::vector<char>* to) const;

  int64_t points() const { return points_; }
  int64_t memory_bytes() const {
    return static_cast<int64_t>(runs_.size() * sizeof(Run) + sizeof *this);
  }

  // visit(global, local, count) for what lies in [first, last) of the grid, ascending in the grid.
  template <typename Visit>
  void each(int64_t first, int64_t last, Visit visit) const {
    if (points_ == 0 || last <= first) return;
    if (block_) {
      each_row(first, last, visit);
    } else {
      each_run(first, last, visit);
    }
  }
  // The part of local memory, [lo, hi), that holds all of this rank's points in [first, last);
  // empty: lo == hi.
  std::pair<int64_t, int64_t> bounds(int64_t first, int64_t last) const;

 private:
  template <typename Visit>
  void each_row(int64_t first, int64_t last, Visit visit) const {
    if (ni_ == nx_) {  // whole rows: one run
      const int64_t from = std::max(first, j0_ * nx_), to = std::min(last, (j0_ + nj_) * nx_);
      if (from < to) visit(from, from - j0_ * nx_, to - from);
      return;
    }
    const int64_t top = std::min(j0_ + nj_, (last - 1) / nx_ + 1);
    for (int64_t j = std::max(j0_, first / nx_); j < top; ++j) {
      const int64_t row = j * nx_ + i0_, from = std::max(first, row),
                    to = std::min(last, row + ni_);
      if (from < to) visit(from, (j - j0_) * ni_ + from - row, to - from);
    }
  }
  template <typename Visit>
  void each_run(int64_t first, int64_t last, Visit visit) const {
    auto run = std::upper_bound(runs_.begin(), runs_.end(), first,
                                [](int64_t at, const Run& r) { return at < r.global + r.count; });
    for (; run != runs_.end() && run->global < last; ++run) {
      const int64_t from = std::max(first, run->global),
                    to = std::min(last, run->global + run->count);
      if (from < to) visit(from, run->local + from - run->global, to - from);
    }
  }

  bool block_ = true;
  int64_t i0_ = 0, ni_ = 0, j0_ = 0, nj_ = 0, nx_ = 1, points_ = 0;
  std::vector<Run> runs_;
};

}  // namespace weir::output
