// SPDX-License-Identifier: Apache-2.0
// Hints for MPI_File_open: which file gets which is in the rules.
#pragma once

#include "layers/machinery/rules/rules.h"

namespace weir::hook {

// Hints of these rules are in force; the rules stay where they are. rank: -1 when it is not known.
void set_hints(const rules::Rules& rules, int rank);
// Whether any were set.
bool has_hints();

}  // namespace weir::hook
