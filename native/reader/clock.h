// SPDX-License-Identifier: Apache-2.0
// Ticks to ns in fixed point: the same integers on every machine and in Python. Where the line
// comes from is decided by python/weir/analysis/clock.py.
#pragma once

#include "reader/weir_reader.h"

namespace weir::reader {

inline constexpr unsigned kClockShift = 48;

inline int64_t timestamp_ns(const weir_reader_clock& clock, uint64_t ticks) {
  const auto distance = static_cast<int64_t>(ticks - clock.origin_ticks);
  const auto since =
      static_cast<uint64_t>((static_cast<__int128>(distance) * clock.multiplier) >> kClockShift);
  return static_cast<int64_t>(static_cast<uint64_t>(clock.base_ns) +
                              since);  // unsigned: times of a damaged clock go around
}

inline uint64_t length_ns(const weir_reader_clock& clock, uint64_t ticks) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(ticks) * clock.multiplier) >>
                               kClockShift);
}

}  // namespace weir::reader
