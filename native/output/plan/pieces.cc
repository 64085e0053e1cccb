// SPDX-License-Identifier: Apache-2.0
#include "output/plan/pieces.h"

#include <limits>
#include <string.h>

namespace weir::output {

namespace {

// Least significant digit first, 11 bits each: linear in the runs, as plans of ten million points
// must be.
void sort_by_place(std::vector<Run>& runs, int64_t points) {
  constexpr int kBits = 11;
  std::vector<Run> other(runs.size());
  for (int shift = 0; (points - 1) >> shift > 0; shift += kBits) {
    std::vector<size_t> at((1 << kBits) + 1);
    const auto digit = [&](const Run& r) {
      return static_cast<size_t>(r.global >> shift) & ((1 << kBits) - 1);
    };
    for (const Run& r : runs) ++at[digit(r) + 1];
    for (size_t d = 1; d < at.size(); ++d) at[d] += at[d - 1];
    for (const Run& r : runs) other[at[digit(r)]++] = r;
    runs.swap(other);
  }
}

std::vector<Run> runs_of(const std::vector<int64_t>& indices) {
  std::vector<Run> runs;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!runs.empty() && indices[i] == runs.back().global + runs.back().count) {
      ++runs.back().count;
    } else {
      runs.push_back({indices[i], static_cast<uint32_t>(i), 1});
    }
  }
  return runs;
}

template <typename T>
void append(std::vector<char>* to, const T* values, size_t count) {
  const char* bytes = reinterpret_cast<const char*>(values);
  to->insert(to->end(), bytes, bytes + count * sizeof(T));
}

constexpr size_t kHead = 8;

}  // namespace

Result<Pieces> Pieces::of(const Decomposition& d, const Grid& grid) {
  Pieces made;
  made.nx_ = std::max<int64_t>(grid.nx, 1);
  made.block_ = d.block;
  made.points_ = d.points();
  if (d.block) {
    if (d.ni < 0 || d.nj < 0 || d.i0 < 0 || d.j0 < 0 ||
        (made.points_ > 0 && (d.i0 + d.ni > grid.nx || d.j0 + d.nj > grid.ny))) {
      return Status{WEIR_E_DECOMPOSITION,
                    "decomposition '" + d.name + "': columns " + std::to_string(d.i0) + " + " +
                        std::to_string(d.ni) + ", rows " + std::to_string(d.j0) + " + " +
                        std::to_string(d.nj) + " are not within the " + std::to_string(grid.nx) +
                        " x " + std::to_string(grid.ny) + " points of grid '" + grid.name + "'"};
    }
    made.i0_ = d.i0, made.ni_ = d.ni, made.j0_ = d.j0, made.nj_ = d.nj;
    return made;
  }
  if (d.indices.size() > std::numeric_limits<uint32_t>::max()) {
    return Status{WEIR_E_DECOMPOSITION,
                  "decomposition '" + d.name + "': more than 4294967295 indices on one rank"};
  }
  for (size_t i = 0; i < d.indices.size(); ++i) {
    if (d.indices[i] < 0 || d.indices[i] >= grid.points()) {
      return Status{WEIR_E_DECOMPOSITION,
                    "decomposition '" + d.name + "': index " + std::to_string(d.indices[i]) +
                        " at place " + std::to_string(i) + " is outside of grid '" + grid.name +
                        "', which has " + std::to_string(grid.points()) +
                        " points numbered from 0"};
    }
  }
  made.runs_ = runs_of(d.indices);
  const auto before = [](const Run& a, const Run& b) { return a.global < b.global; };
  if (!std::is_sorted(made.runs_.begin(), made.runs_.end(), before))
    sort_by_place(made.runs_, grid.points());
  made.runs_.shrink_to_fit();
  return made;
}

void Pieces::encode(std::vector<char>* to) const {
  const int64_t head[kHead] = {block_, i0_, ni_,     j0_,
                               nj_,    nx_, points_, static_cast<int64_t>(runs_.size())};
  append(to, head, kHead);
  append(to, runs_.data(), runs_.size());
}

Result<Pieces> Pieces::decode(std::span<const char> bytes) {
  int64_t head[kHead];
  const Status bad{WEIR_E_INTERNAL, "a rank's part of a decomposition came damaged"};
  if (bytes.size() < sizeof head) return bad;
  memcpy(head, bytes.data(), sizeof head);
  if (head[7] < 0 || bytes.size() - sizeof head != static_cast<size_t>(head[7]) * sizeof(Run))
    return bad;
  Pieces made;
  made.block_ = head[0] != 0;
  made.i0_ = head[1], made.ni_ = head[2], made.j0_ = head[3], made.nj_ = head[4],
  made.nx_ = head[5], made.points_ = head[6];
  made.runs_.resize(static_cast<size_t>(head[7]));
  if (head[7] > 0)
    memcpy(static_cast<void*>(made.runs_.data()), bytes.data() + sizeof head,
           made.runs_.size() * sizeof(Run));
  return made;
}

std::pair<int64_t, int64_t> Pieces::bounds(int64_t first, int64_t last) const {
  int64_t lo = points_, hi = 0;
  if (block_ && ni_ != nx_ &&
      points_ > 0) {  // local order is that of the grid: the first and the last row decide
    const int64_t from = std::max(first, j0_ * nx_ + i0_),
                  to = std::min(last, (j0_ + nj_ - 1) * nx_ + i0_ + ni_);
    if (from >= to) return {0, 0};
    lo = (from / nx_ - j0_) * ni_;
    if (from % nx_ >= i0_ + ni_) {
      lo += ni_;
    } else {
      lo += std::max<int64_t>(from % nx_ - i0_, 0);
    }
    int64_t j = (to - 1) / nx_, i = (to - 1) % nx_;
    if (i < i0_) --j, i = i0_ + ni_ - 1;
    hi = (j - j0_) * ni_ + std::min(i, i0_ + ni_ - 1) - i0_ + 1;
  } else {
    each(first, last, [&](int64_t, int64_t local, int64_t count) {
      lo = std::min(lo, local);
      hi = std::max(hi, local + count);
    });
  }
  return lo < hi ? std::pair<int64_t, int64_t>{lo, hi} : std::pair<int64_t, int64_t>{0, 0};
}

}  // namespace weir::output
