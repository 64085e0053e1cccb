// SPDX-License-Identifier: Apache-2.0
// The C ABI of the cost of output. No logic: no exception leaves.
#include <algorithm>

#include "reader/handle.h"
#include "reader/output_cost.h"

using namespace weir::reader;

WEIR_API int weir_reader_output_costs(const weir_reader* reader, const weir_reader_clock* clock,
                                      const weir_reader_output* asked,
                                      weir_reader_output_cost* rows, uint64_t room,
                                      uint64_t* count) {
  return guarded([&] {
    const auto found = output_costs({&reader->file, &reader->index, &reader->names, *clock, asked});
    *count = found.size();
    std::copy_n(found.begin(), std::min<uint64_t>(room, found.size()), rows);
  });
}
