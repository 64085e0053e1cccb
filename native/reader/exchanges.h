// SPDX-License-Identifier: Apache-2.0
// How much each process received from each rank, and what its part in collectives was.
#pragma once

#include <vector>

#include "reader/index.h"

namespace weir::reader {

// By process; what a process received from more than 4,096 ranks counts for the last of them as
// from an unknown one. cost: one pass over all records on so many threads. before: a scan, or
// find_times.
std::vector<weir_reader_exchange> find_exchanges(const Mapping& file, const Index& index,
                                                 unsigned threads);

}  // namespace weir::reader
