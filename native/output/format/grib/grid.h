// SPDX-License-Identifier: Apache-2.0
// The keys of a grid.
#pragma once

#include "output/format/grib/plan.h"

namespace weir::output::grib {

// The horizontal dimensions of a variable: its last one or two.
struct Horizontal {
  size_t first = 0;  // index in Variable::dimensions
  int64_t nx = 0, ny = 1;
  const std::vector<double>*lon = nullptr, *lat = nullptr;  // null: without one-dimensional ones
  bool is_plane = false;
};

Horizontal horizontal_of(const FileDescription& description, const Variable& v);

// Appends the grid to plan->header. `given`: the keys that are given, those of weir taken out.
// fails: WEIR_E_FORMAT
Status add_grid(const Horizontal& horizontal, FormatKeys* given, Plan* plan);

// The same of a reduced Gaussian grid whose rows, north to south, have these numbers of points.
Status add_reduced(std::vector<double> rows, Plan* plan);

}  // namespace weir::output::grib
