// SPDX-License-Identifier: Apache-2.0
// The calls of a rank as the C ABI names them.
#pragma once

#include "reader/calls.h"
#include "reader/handle.h"

namespace weir::reader {

inline Calls calls_of(const weir_reader_member* members, uint64_t count) {
  std::vector<Member> made;
  for (uint64_t i = 0; i < count; ++i) {
    const weir_reader_member& one = members[i];
    made.push_back({&one.reader->file, &one.reader->index, &one.reader->names, one.clock,
                    one.process, one.thread, one.is_whole != 0});
  }
  return Calls(std::move(made));
}

}  // namespace weir::reader
