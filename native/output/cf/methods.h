// SPDX-License-Identifier: Apache-2.0
// CF's words for what was done to a field over time (section 7.3 of the conventions), and for what
// its units leave open.
#pragma once

#include <string>

#include <weir/stream.h>

namespace weir::output {

// `own`: what the program says of the field. A part of it about time is left alone: the program
// knows better.
inline std::string cell_methods(const std::string& own, weir_operation operation,
                                bool stream_reduces) {
  const char* over_time = nullptr;
  switch (operation) {
    case WEIR_MEAN: over_time = "time: mean"; break;
    case WEIR_MINIMUM: over_time = "time: minimum"; break;
    case WEIR_MAXIMUM: over_time = "time: maximum"; break;
    case WEIR_ACCUMULATE: over_time = "time: sum"; break;
    // Beside reduced fields time has bounds, which a value of one moment must disclaim.
    case WEIR_INSTANT: over_time = stream_reduces ? "time: point" : nullptr; break;
  }
  if (!over_time) return own;
  const bool says_time = own.rfind("time:", 0) == 0 || own.find(" time:") != std::string::npos;
  if (own.empty()) return over_time;
  return says_time && operation == WEIR_INSTANT ? own : own + " " + over_time;
}

// CF-1.11 wants to know of the calendars of the real world whether leap seconds are counted
// (section 4.4). Models count none.
inline bool has_leap_seconds(const std::string& calendar) {
  return calendar == "standard" || calendar == "gregorian" || calendar == "proleptic_gregorian" ||
         calendar == "julian";
}

// Whether the standard name is a temperature itself, and not a difference of some: CF-1.11 wants it
// said (section 3.1.2).
inline bool is_temperature(const std::string& standard_name) {
  const std::string end = "temperature";
  if (standard_name.size() < end.size() ||
      standard_name.compare(standard_name.size() - end.size(), end.size(), end) != 0)
    return false;
  for (const char* other : {"tendency", "difference", "anomaly", "excess", "change", "product",
                            "derivative", "gradient", "square", "ratio"}) {
    if (standard_name.find(other) != std::string::npos) return false;
  }
  return true;
}

}  // namespace weir::output
