// SPDX-License-Identifier: Apache-2.0
// Who writes which elements of a frame, and in which pieces. A frame is the records of a stream's
// columns (fields) one after the other; owners get contiguous ranges of it, balanced by bytes. An
// owner goes through its range in slabs of bounded size. All of it is computed from sizes alone, so
// that every rank comes to the same result.
#pragma once

#include <cstdint>
#include <vector>

namespace weir::output {

// What sharing has to know of a column.
struct ColumnShape {
  int64_t levels = 1, points = 0;  // elements of a record: levels x points
  int64_t element_bytes = 4;       // the greater one of memory and file
  int64_t granule = 1;             // cuts are at multiples of this many elements
};

// Elements [first, first + count) of a column's record.
struct Part {
  int column = 0;
  int64_t first = 0, count = 0;
};

// parts[owner], in the order of the file. Some owners get nothing when there are more of them than
// granules.
std::vector<std::vector<Part>> share(const std::vector<ColumnShape>& columns, int owners);

// The parts cut into slabs of at most `limit_bytes` (one granule may be more): whole levels where
// they fit, else pieces of a level.
std::vector<Part> slabs(const std::vector<ColumnShape>& columns, const std::vector<Part>& parts,
                        int64_t limit_bytes);

// A slab's piece that is contiguous in each client's memory for whole levels, or one part of one
// level.
struct Strip {
  int64_t level = 0, levels = 0;  // whole levels, or
  int64_t first = 0,
          last = 0;  // [first, last) of the points of one level (whole levels: all points)
};

template <typename Visit>
void each_strip(const ColumnShape& column, const Part& part, Visit visit) {
  const int64_t points = column.points;
  int64_t at = part.first;
  const int64_t end = part.first + part.count;
  while (at < end) {
    const int64_t level = at / points, within = at % points;
    if (within == 0 && end - at >= points) {
      const int64_t levels = (end - at) / points;
      visit(Strip{level, levels, 0, points});
      at += levels * points;
    } else {
      const int64_t last = end < (level + 1) * points ? end - level * points : points;
      visit(Strip{level, 1, within, last});
      at += last - within;
    }
  }
}

}  // namespace weir::output
