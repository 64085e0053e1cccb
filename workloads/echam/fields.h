// SPDX-License-Identifier: Apache-2.0
// The output of the model: which variables there are, in which files, and their values, which
// anybody can compute.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "output/writer/collect.h"

namespace echam {

struct Grid {
  int64_t nlon = 0, nlat = 0;
  int64_t points() const { return nlon * nlat; }
};

// As ECHAM with 47 levels: of eight variables one is on all levels, one on some, one on the five of
// the soil, the others on one. Files take turns.
std::vector<weir::output::writer::Variable> variables(int count, int files);

// Values of the points first, first + 1, ... of a record.
class Values {
 public:
  Values();
  void fill(int step, int variable, int level, int64_t first, std::span<double> values) const;

 private:
  std::vector<double> noise_;
};

}  // namespace echam
