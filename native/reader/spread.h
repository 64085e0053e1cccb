// SPDX-License-Identifier: Apache-2.0
// What differs between the ranks of a file (weir_spread.h), accumulated node by node.
#pragma once

#include <span>
#include <vector>

#include "reader/places.h"
#include "reader/weir_spread.h"

namespace weir::reader {

// A damaged trace may have any figures.
inline void add_to(int64_t& sum, int64_t figure) {
  sum = int64_t(uint64_t(sum) + uint64_t(figure));
}

class Spread {
 public:
  using Rows = std::vector<const weir_spread_row*>;

  // All rows of the ranks among them.
  void add(std::span<const weir_spread_row> rows);

  // What another one has found, of other ranks.
  void join(const weir_spread_file& one);

  const SpillVector<weir_spread_file>& files() const { return files_; }

 private:
  weir_spread_file& of(int32_t name, int32_t way);
  void add_ranks(Rows rows);
  void add_interleaved(Rows rows);

  SpillVector<weir_spread_file> files_;
  PlaceTable places_;
};

// The same of one trace file: rows whose file is not known yet, or whose rank has processes in
// several of them, are kept.
class SpreadOfFile {
 public:
  // apart: by number of a name whether its rows are kept until it is known which file they are of;
  // loose: rising numbers of ranks whose rows are kept until all are there.
  SpreadOfFile(std::span<const uint8_t> apart, std::span<const int32_t> loose)
      : apart_(apart), loose_(loose) {}

  // All rows; changes what they count for.
  void add(std::span<weir_spread_row> rows);

  const SpillVector<weir_spread_file>& files() const { return spread_.files(); }
  const std::vector<weir_spread_row>& kept() const { return kept_; }

 private:
  const std::span<const uint8_t> apart_;
  const std::span<const int32_t> loose_;
  Spread spread_;
  std::vector<weir_spread_row> kept_;
};

}  // namespace weir::reader
