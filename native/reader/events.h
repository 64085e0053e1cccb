// SPDX-License-Identifier: Apache-2.0
// Raw records as columns, for those who ask questions that no table answers. Decides which records
// are calls and whose they are; names as texts, ranks and steps are left to the caller.
#pragma once

#include "reader/names.h"

namespace weir::reader {

// Up to `room` rows of wanted operations and chosen processes (null: all) behind the cursor, which
// moves on; fewer: the cursor's last chunk is at its end. Needs no scan. cost: one pass over what
// is filled, none over chunks of other processes; no memory.
uint64_t read_events(const Mapping& file, Index& index, const Names& names,
                     const weir_reader_clock& clock, weir_reader_cursor& cursor, uint64_t room,
                     const uint8_t* wanted, const uint8_t* chosen,
                     const weir_reader_columns& out);

}  // namespace weir::reader
