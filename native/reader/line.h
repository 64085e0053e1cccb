// SPDX-License-Identifier: Apache-2.0
// What a rank is in, at timestamps that are known before: the lengths of unions of its calls up to
// each of them.
#pragma once

#include <span>

#include "reader/calls.h"

namespace weir::reader {

// See weir_reader_line_lengths(). Chunks are read in the order in which they begin: what lies
// before the next one is complete, is answered and forgotten. Unions that all calls so far have in
// common are made once. memory: `room` intervals for each union, or as many as threads have open.
void line_lengths(const Calls& calls, const weir_reader_line& line, int64_t* lengths,
                  int64_t* lasts);

}  // namespace weir::reader
