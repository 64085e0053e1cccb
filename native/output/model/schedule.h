// SPDX-License-Identifier: Apache-2.0
// When a stream writes.
#pragma once

#include "output/model/catalogue.h"

namespace weir::output {

// Whether the stream has a frame at this time (seconds since the reference) and step (from 0). Times that miss a multiple of every_s by
// the rounding of a model's clock count: the tolerance is a millionth of the interval.
bool is_due(const Stream& stream, double time_s, int64_t step);

}  // namespace weir::output
