// SPDX-License-Identifier: Apache-2.0
#include "output/model/schedule.h"

#include <cmath>

namespace weir::output {

bool is_due(const Stream& stream, double time_s, int64_t step) {
  if (stream.fields.empty()) return false;
  if (stream.every_s > 0) {
    const double intervals = time_s / stream.every_s;
    return std::abs(intervals - std::round(intervals)) < 1e-6;
  }
  return stream.every_steps > 0 && step % stream.every_steps == 0;
}

}  // namespace weir::output
