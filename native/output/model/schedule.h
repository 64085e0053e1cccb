// SPDX-License-Identifier: Apache-2.0
// When a stream writes, and when it begins another file.
#pragma once

#include <optional>

#include "output/core/status.h"
#include "output/model/catalogue.h"

namespace weir::output {

// Whether the stream has a frame at this time (seconds since the reference) and step (from 0): with
// every_s at the first step at or after each multiple of it that lies behind `previous_s`, the time
// of the step before (none: the first step has one if it is at a multiple). Times that miss a
// multiple by the rounding of a model's clock are at it: the tolerance is a millionth of the
// interval.
bool is_due(const Stream& stream, std::optional<double> previous_s, double time_s, int64_t step);

// The number of the day, month or year which the time lies in; 0 for Period::kNone.
Result<int64_t> period_at(const Catalogue& catalogue, Period period, double time_s);

// The multiple of every_s which a frame at this time is for. That decides which period it belongs
// to, so that the last frame of a period is known when it is written.
double due_since_s(const Stream& stream, double time_s);

}  // namespace weir::output
