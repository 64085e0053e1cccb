// SPDX-License-Identifier: Apache-2.0
// CF's words for what was done to a field over time (section 7.3 of the conventions).
#pragma once

#include <string>

#include <weir/stream.h>

namespace weir::output {

// `own`: what the program says of the field. A part of it about time is left alone: the program knows better.
inline std::string cell_methods(const std::string& own, weir_operation operation, bool stream_reduces) {
  const char* over_time = nullptr;
  switch (operation) {
    case WEIR_MEAN: over_time = "time: mean"; break;
    case WEIR_MINIMUM: over_time = "time: minimum"; break;
    case WEIR_MAXIMUM: over_time = "time: maximum"; break;
    case WEIR_ACCUMULATE: over_time = "time: sum"; break;
    // Beside reduced fields time has bounds, which a value of one instant must disclaim.
    case WEIR_INSTANT: over_time = stream_reduces ? "time: point" : nullptr; break;
  }
  if (!over_time) return own;
  const bool says_time = own.rfind("time:", 0) == 0 || own.find(" time:") != std::string::npos;
  if (own.empty()) return over_time;
  return says_time && operation == WEIR_INSTANT ? own : own + " " + over_time;
}

}  // namespace weir::output
