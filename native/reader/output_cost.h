// SPDX-License-Identifier: Apache-2.0
// What output costs each rank of a trace file, by file and variable (docs/guide/output-cost.md).
#pragma once

#include <vector>

#include "reader/output_calls.h"

namespace weir::reader {

// Rows by rank and label.
std::vector<weir_reader_output_cost> output_costs(const OutputInput& input);

}  // namespace weir::reader
