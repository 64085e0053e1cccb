// SPDX-License-Identifier: Apache-2.0
// A run once more, with some of its I/O at no cost: when each call of MPI would have ended, and
// which calls decide when the run ends. What waits for what is decided by
// python/weir/report/waits/operations.py.
#pragma once

#include "reader/weir_reader.h"

namespace weir::reader {

// See weir_reader_replay_order() and weir_reader_replay_run().
void order_events(const weir_reader_replay& run, uint32_t* order);
void replay(const weir_reader_replay& run, const uint32_t* order, const int64_t* free_ns,
            weir_reader_replayed& result);

}  // namespace weir::reader
