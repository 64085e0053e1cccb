// SPDX-License-Identifier: Apache-2.0
#include "output/plan/share.h"

#include <algorithm>

namespace weir::output {

namespace {

int64_t elements(const ColumnShape& c) { return c.levels * c.points; }

// The cut of the column nearest to `at`: between levels when that shifts it by less than an eighth
// of a share, else at a granule.
int64_t cut(const ColumnShape& c, int64_t at, int64_t share_elements) {
  const int64_t all = elements(c);
  const auto nearest = [&](int64_t unit) { return std::min((at + unit / 2) / unit * unit, all); };
  const int64_t level = nearest(c.points);
  if (c.points % c.granule == 0 || level % c.granule == 0) {
    if (std::abs(level - at) <= share_elements / 8) return level;
  }
  return nearest(c.granule);
}

}  // namespace

std::vector<std::vector<Part>> share(const std::vector<ColumnShape>& columns, int owners) {
  std::vector<std::vector<Part>> parts(static_cast<size_t>(owners));
  int64_t total = 0;
  for (const ColumnShape& c : columns) total += elements(c) * c.element_bytes;
  // The border between owners k - 1 and k is at total * k / owners, without overflow.
  const auto border = [&](int64_t k) { return total / owners * k + total % owners * k / owners; };
  int owner = 0;
  int64_t before = 0;  // bytes of the columns before this one
  for (size_t i = 0; i < columns.size(); ++i) {
    const ColumnShape& c = columns[i];
    const int64_t all = elements(c), bytes = all * c.element_bytes;
    int64_t at = 0;
    while (at < all) {
      int64_t end = all;
      if (owner + 1 < owners && border(owner + 1) < before + bytes) {
        end = std::max(at, cut(c, (border(owner + 1) - before) / c.element_bytes,
                               total / owners / c.element_bytes));
      }
      if (end > at)
        parts[static_cast<size_t>(owner)].push_back({static_cast<int>(i), at, end - at});
      at = end;
      if (at < all) ++owner;
    }
    before += bytes;
    while (owner + 1 < owners && border(owner + 1) <= before) ++owner;
  }
  return parts;
}

std::vector<Part> slabs(const std::vector<ColumnShape>& columns, const std::vector<Part>& parts,
                        int64_t limit_bytes) {
  std::vector<Part> made;
  for (const Part& part : parts) {
    const ColumnShape& c = columns[static_cast<size_t>(part.column)];
    const int64_t limit = std::max<int64_t>(limit_bytes / c.element_bytes, 1),
                  end = part.first + part.count;
    for (int64_t at = part.first; at < end;) {
      int64_t next = at + limit;
      if (next < end) {
        const int64_t level = next / c.points * c.points;
        next = level > at && level % c.granule == 0 ? level : next / c.granule * c.granule;
        if (next <= at) next = (at / c.granule + 1) * c.granule;
      }
      next = std::min(next, end);
      made.push_back({part.column, at, next - at});
      at = next;
    }
  }
  return made;
}

}  // namespace weir::output
