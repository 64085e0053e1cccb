// SPDX-License-Identifier: Apache-2.0
// Time of I/O calls between edges, and a cost that is given for it, shared among files and
// operations. Calls within others of their thread are left out.
#pragma once

#include "reader/calls.h"

namespace weir::reader {

// See weir_reader_call_time() and weir_reader_call_shares().
void call_time(const Calls& calls, const weir_reader_edges& edges, uint64_t rows, int64_t* cells);
void call_shares(const Calls& calls, const weir_reader_edges& edges, uint64_t costs,
                 const double* sums, double* out);

}  // namespace weir::reader
