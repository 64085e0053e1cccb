// SPDX-License-Identifier: Apache-2.0
// How a step's files are accessed (weir_accesses.h): what find_accesses() has of each trace file,
// joined in the order of the files, so that memory grows with the files of the step and not with
// those of each rank or node.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "reader/commons.h"
#include "reader/spread.h"
#include "reader/weir_accesses.h"

namespace weir::reader {

// What a trace file adds to a step. rows: those of each name and direction added up, unless they
// stay apart; names: of each access that `common` speaks of; places: by direction and access, its
// row, of rows that stay apart.
struct FileAccesses {
  std::vector<weir_accesses_row> rows;
  SpreadOfFile spread;
  std::vector<weir_reader_common> common;
  std::vector<int32_t> names;
  std::array<std::vector<int64_t>, 2> places;
};

class StepAccesses {
 public:
  explicit StepAccesses(const weir_accesses_choice& choice);

  // before: what the trace files in front of this one have.
  void add(const FileAccesses& one);

  // Whether the few most common values of a file are enough of the next trace files.
  bool takes_few() const { return values_.is_full(); }

  // Once all are there.
  void finish();

  const SpillVector<weir_accesses_row>& rows() const { return rows_; }
  const SpillVector<weir_accesses_common>& common() const { return common_; }
  const Spread& spread() const { return spread_; }
  const SpillVector<weir_spread_row>& kept() const { return kept_; }

 private:
  void add_row(const weir_accesses_row& one);
  void add_common_of_rows(const FileAccesses& one);

  const bool by_rank_;
  SpillVector<weir_accesses_row> rows_;
  PlaceTable places_;  // of rows, by name and direction
  CommonValues values_;
  SpillVector<weir_accesses_common> common_;
  Spread spread_;
  SpillVector<weir_spread_row> kept_;
};

// Reads all files. False when one of them has lost names of which it does not say the numbers.
// Throws when memory or threads run out.
bool read_accesses(std::span<const weir_accesses_file> files, const weir_accesses_choice& choice,
                   StepAccesses& into);

}  // namespace weir::reader
